// Drives the console in Chromium, as people do:
//   journeys.cjs CHROMIUM URL JOURNEY [FOLDER FOR SCREENSHOTS]
// Ends with 0 when all went as it should, else says what did not.
'use strict';

const { mkdir } = require('node:fs/promises');
const { join } = require('node:path');
const { chromium } = require('playwright-core');
const { source: axe } = require('axe-core');

const [program, url, journey, screenshots] = process.argv.slice(2);
/** Far above what anything needs, so that only a hang reaches it. */
const DEADLINE_MS = 60_000;

/** Shown, never run. */
const HOSTILE = [
  '<img src=x onerror="window.ran=1"><script>window.ran=2</script>',
  '</textarea><svg onload=window.ran=3>',
  '\u001b[31mred\u001b[0m \u202Etxt.exe\u2066 javascript:window.ran=4 {{constructor.constructor("window.ran=5")()}}',
  'x'.repeat(5_000),
].join('\n');

function demand(holds, what) {
  if (!holds) throw new Error(what);
}

/** A page that is watched for what it must not do. */
async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en', ...options });
  context.setDefaultTimeout(DEADLINE_MS);
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('dialog', (dialog) => wrong.push(`a dialog: ${dialog.message()}`));
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(url).origin && protocol !== 'blob:') wrong.push(`a request to ${request.url()}`);
  });
  return { context, page, wrong };
}

/** Says something and waits until it is decided on and answered. */
async function say(page, words) {
  const answers = await page.locator('[data-manner=answer]').count();
  await page.getByRole('textbox', { name: /^(Write to|写给)/ }).fill(words);
  await page.getByRole('button', { name: /^(Send|发送)$/ }).click();
  await page.locator('[data-manner=answer]').nth(answers).waitFor();
  await page.locator('[data-stage=decided]').last().waitFor();
}

/** What the conversation shows: who said what, and how far it is. */
function conversation(page) {
  return page.locator('[role=log] article').evaluateAll((articles) =>
    articles.map(({ dataset, innerText }) => ({ ...dataset, text: innerText })),
  );
}

const journeys = {
  /** From the first page to an answer, and the same after a reload. */
  async chat(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/`);
    await page.waitForURL(`${url}/console/`);
    await page.getByRole('link', { name: /^Talk/ }).first().click();
    await page.getByLabel('You are').fill(`guest-${process.pid}`);
    await page.getByLabel('You are').press('Enter');
    await page.getByText('Nothing was said yet.').waitFor();
    await say(page, 'ahoy');
    await say(page, 'what time is it? time please');
    const before = await conversation(page);
    demand(before.length === 4, `two messages and two answers, not ${JSON.stringify(before)}`);
    demand(before[1].text.includes('You said: ahoy'), `the answer, not ${before[1].text}`);
    await page.locator('details[data-stage=done]', { hasText: 'tools.now' }).waitFor();
    await page.reload();
    await page.locator('[data-manner=answer]').nth(1).waitFor();
    const after = await conversation(page);
    demand(JSON.stringify(after) === JSON.stringify(before), `the same after a reload, not ${JSON.stringify(after)}`);
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What others write is shown, and never runs. */
  async hostile(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/chat/default`);
    await say(page, HOSTILE);
    const shown = await conversation(page);
    for (const { text } of shown.slice(-2)) {
      demand(text.includes('<img src=x onerror="window.ran=1">'), `markup as it is written, not ${text.slice(0, 200)}`);
      demand(text.includes('␛') && text.includes('U+202E'), `controls by their names, not ${text.slice(0, 400)}`);
      demand(!/[\u001b\u202e]/.test(text), 'no control as it is');
    }
    await page.goto(`${url}/console/river?agent=default`);
    await page.getByRole('option').last().click();
    await page.getByRole('region', { name: 'Event' }).waitFor();
    const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    demand(width[0] <= width[1], `nothing wider than the window: ${width}`);
    demand((await page.evaluate(() => window.ran)) === undefined, 'something ran');
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** Every event, from the keyboard. */
  async river(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/river`);
    const option = (name) => page.getByRole('option', { name });
    await option(/agent\.action.*You said/).last().waitFor();
    await page.getByLabel('Kinds').fill('user.message agent.message agent.action');
    await page.waitForURL(/kinds=user\.message/);
    await option(/user\.message/).first().click();
    const details = page.getByRole('region', { name: 'Event' });
    const kind = () => details.getByRole('heading', { level: 2 }).innerText();
    demand((await kind()) === 'user.message', await kind());
    await page.keyboard.press('e');
    demand((await kind()) === 'agent.message', `what it caused, not ${await kind()}`);
    await page.keyboard.press('c');
    demand((await kind()) === 'user.message', `its cause, not ${await kind()}`);
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    demand((await kind()) === 'user.message', `there and back, not ${await kind()}`);
    await page.keyboard.press('Escape');
    await details.waitFor({ state: 'detached' });
    const counts = await page.locator('[data-counts]').getAttribute('data-counts');
    const [received, kept, folded] = counts.split(/[=+]/).map(Number);
    demand(received > 0 && received === kept + folded, counts);
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** Nothing keeps anybody out: every screen, light and dark, in both languages. */
  async access(browser) {
    const found = [];
    for (const colorScheme of ['light', 'dark']) {
      for (const locale of ['en', 'zh-CN']) {
        const { context, page, wrong } = await open(browser, { colorScheme, locale, bypassCSP: true });
        for (const [name, path, shown] of SCREENS) {
          await page.goto(`${url}/console${path}`);
          await page.locator(shown).first().waitFor();
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
          for (const { id, help, nodes } of violations) {
            found.push(`${name}, ${colorScheme}, ${locale}: ${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`);
          }
          if (screenshots) {
            await mkdir(screenshots, { recursive: true });
            await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${locale}.png`) });
          }
        }
        demand(wrong.length === 0, wrong.join('\n'));
        await context.close();
      }
    }
    demand(found.length === 0, found.join('\n'));
  },
};

/** Name, path, and what is there once it shows something. */
const SCREENS = [
  ['overview', '/', 'main li strong'],
  ['chat', '/chat/default', '[data-manner=answer]'],
  ['river', '/river', '[role=option]'],
  ['search', '/search?q=time', 'main ol li a'],
  ['graph', '/graph', 'main ol li a'],
  ['replay', '/replay/default', '#state'],
  ['teams', '/teams', '.all .notice, .all section'],
  ['usage', '/usage', 'main tfoot'],
  ['fleet', '/fleet', 'main article'],
  ['nowhere', '/no/such/screen', 'main h1'],
];

async function main() {
  const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    await journeys[journey](browser);
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
