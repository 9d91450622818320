// Drives the console in Chromium, as people do:
//   journeys.cjs CHROMIUM URL JOURNEY,JOURNEY,… [KEYS]
// Ends with 0 when all went as it should, else says what did not. With KAIRO_SCREENSHOTS, a folder, it leaves pictures there. What it
// cannot do from a browser it asks for: a line `want WHAT` on its output is answered by a line when that is done.
'use strict';

const { chromium } = require('playwright-core');
const { journeys, program } = require('./page.cjs');

const known = Object.assign(
  {},
  ...['talking', 'looking', 'access', 'signing-in', 'working', 'outages', 'measuring', 'lab'].map((of) => require(`./${of}.cjs`)),
);

async function main() {
  const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    for (const name of journeys.split(',')) {
      const begun = Date.now();
      await known[name](browser).catch((error) => {
        throw new Error(`${name}: ${error.stack}`);
      });
      console.error(`${name}: ${Date.now() - begun} ms`);
      for (const context of browser.contexts()) await context.close();
    }
  } finally {
    await browser.close();
  }
}

main().then(
  () => process.exit(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
