// Reads an AsyncAPI document from standard input, prints everything the parser complains about, and exits 1 if anything
// is an error or a warning.
const { readFileSync } = require('node:fs')
const { Parser, DiagnosticSeverity } = require('@asyncapi/parser')

async function main() {
  const { document, diagnostics } = await new Parser().parse(readFileSync(0, 'utf8'))
  for (const { severity, code, path, message } of diagnostics) {
    console.log(`${DiagnosticSeverity[severity] ?? severity} ${code} at ${path.join('.')}: ${message}`)
  }
  const bad = diagnostics.some(({ severity }) => severity <= 1)
  if (!document || bad) process.exit(1)
  console.log(`valid AsyncAPI ${document.version()}: ${document.channels().all().length} channels`)
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
