// Reads an OpenAPI document from standard input, prints everything Redocly's linter complains about, and exits 1 if
// anything is an error or a warning.
const { readFileSync } = require('node:fs')
const { createConfig, lintFromString } = require('@redocly/openapi-core')

// A connection that becomes a WebSocket has no answer of success but 101.
const rules = { 'operation-2xx-response': 'off' }

async function main() {
  const config = await createConfig({ extends: ['recommended'], rules })
  const problems = await lintFromString({ source: readFileSync(0, 'utf8'), absoluteRef: 'openapi.yaml', config })
  for (const { severity, ruleId, message, location } of problems) {
    console.log(`${severity} ${ruleId} at ${location.map(({ pointer }) => pointer).join(', ')}: ${message}`)
  }
  if (problems.length > 0) process.exit(1)
  console.log('valid OpenAPI 3.1')
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
