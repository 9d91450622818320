// Drives the console in Chromium, as people do:
//   journeys.cjs CHROMIUM URL JOURNEY [KEYS]
// Ends with 0 when all went as it should, else says what did not. With KAIRO_SCREENSHOTS, a folder, it leaves pictures there.
'use strict';

const { mkdir } = require('node:fs/promises');
const { join } = require('node:path');
const { chromium } = require('playwright-core');
const { source: axe } = require('axe-core');

const [program, url, journey, ...keys] = process.argv.slice(2);
const screenshots = process.env.KAIRO_SCREENSHOTS;
/** Far above what anything needs, so that only a hang reaches it. */
const DEADLINE_MS = 60_000;

/** Shown, never run. */
const HOSTILE = [
  '<img src=x onerror="window.ran=1"><script>window.ran=2</script>',
  '</textarea><svg onload=window.ran=3>',
  '\u001b[31mred\u001b[0m \u202Etxt.exe\u2066 javascript:window.ran=4 {{constructor.constructor("window.ran=5")()}}',
  'x'.repeat(5_000),
].join('\n');

/** An image of one pixel. */
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

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

/** What keeps people out of what is shown now. */
async function barriers(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map(({ id, help, nodes }) => `${name}: ${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`);
}

async function picture(page, name) {
  if (!screenshots) return;
  await mkdir(screenshots, { recursive: true });
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** Comes in with a key. */
async function enter(page, key) {
  await page.getByLabel('API key or token').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
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
    await picture(page, 'chat');
    demand(JSON.stringify(after) === JSON.stringify(before), `the same after a reload, not ${JSON.stringify(after)}`);
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What is written stays, one agent beside another, and images. */
  async several(browser) {
    const { context, page, wrong } = await open(browser);
    await context.addInitScript((user) => localStorage.setItem('kairo.user', user), `guest-${process.pid}`);
    await page.goto(`${url}/console/chat/default`);
    const field = (agent) => page.getByRole('textbox', { name: `Write to ${agent}` });
    await field('default').fill('half a thought');
    await page.reload();
    await field('default').waitFor();
    demand((await field('default').inputValue()) === 'half a thought', 'what was written is there after a reload');
    await page.getByLabel('Attach').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: DOT });
    await page.getByRole('img', { name: 'Image dot.png' }).waitFor();
    const found = await barriers(page, 'an image that is attached');
    await field('default').press('Enter');
    const said = page.locator('article.said', { hasText: 'half a thought' }).getByRole('img', { name: 'Image dot.png' });
    await said.waitFor();
    await page.reload();
    await said.waitFor();
    const wide = await said.evaluate((image) => image.decode().then(() => image.naturalWidth));
    demand(wide === 1, `the image, not one ${wide} wide`);
    await field('default').fill('@co');
    await page.getByRole('option', { name: /@cook/ }).waitFor();
    found.push(...(await barriers(page, 'names that are offered')));
    await field('default').press('Tab');
    demand((await field('default').inputValue()) === '@cook ', 'the name of the agent');
    await field('default').pressSequentially('ahoy');
    await field('default').press('Enter');
    const beside = page.getByRole('log', { name: 'Conversation with cook' });
    await beside.locator('[data-manner=answer]', { hasText: 'You said: ahoy' }).waitFor();
    await page.waitForURL(/beside=cook/);
    const room = await page.evaluate(() => window.innerWidth - document.documentElement.scrollWidth);
    demand(room >= 0, 'nothing wider than the window');
    found.push(...(await barriers(page, 'two conversations')));
    await picture(page, 'several');
    await page.getByRole('button', { name: 'Close the conversation with cook' }).click();
    await beside.waitFor({ state: 'detached' });
    demand(found.length === 0, found.join('\n'));
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** Before there is anything to see, and when something is away. */
  async nothing(browser) {
    const { page } = await open(browser, { bypassCSP: true });
    const found = [];
    await page.goto(`${url}/console/`);
    await page.getByLabel('API key or token').waitFor();
    found.push(...(await barriers(page, 'signing in')));
    await enter(page, 'kairo_wrong');
    await page.getByRole('alert').getByText('does not take this key').waitFor();
    found.push(...(await barriers(page, 'a wrong key')));
    await enter(page, keys[0]);
    await page.getByText('No agent is defined yet').waitFor();
    found.push(...(await barriers(page, 'the overview, empty')));
    await page.getByRole('link', { name: 'Chat', exact: true }).first().click();
    await page.getByText('No agent is defined yet').waitFor();
    found.push(...(await barriers(page, 'the chat, empty')));
    await page.route('**/v1/agents*', (route) => route.abort());
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
    found.push(...(await barriers(page, 'the overview, failed')));
    await page.unroute('**/v1/agents*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('No agent is defined yet').waitFor();
    demand(found.length === 0, found.join('\n'));
  },

  /** What a key may not do is not shown. */
  async rights(browser) {
    const [reads, writes, ann] = keys;
    const { page } = await open(browser);
    const write = page.getByRole('textbox', { name: 'Write to default' });
    await page.goto(`${url}/console/chat/default`);
    await enter(page, reads);
    await page.getByText('This key may read, not write').waitFor();
    demand((await write.count()) === 0, 'nothing to write in for a key that may only read');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await enter(page, writes);
    await page.getByText('This needs a key of the scope read.').waitFor();
    demand((await page.getByRole('link', { name: 'River' }).count()) === 0, 'no screen for a key that may not read');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await enter(page, ann);
    await write.waitFor();
    demand((await page.getByLabel('You are').count()) === 0, 'a key of one user speaks as nobody else');
    await say(page, 'ahoy');
    await page.getByRole('link', { name: 'River' }).first().click();
    await page.getByRole('option', { name: /You said/ }).first().waitFor();
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
    await page.locator('[role=option]').last().click();
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
    await picture(page, 'river');
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

  /** Lists of what there is: chosen from the keyboard, in the address, and the same after a reload. */
  async boards(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/chat/default`);
    await say(page, 'what time is it?');
    for (const path of ['/actions?show=all', '/threads?show=all']) {
      await page.goto(`${url}/console${path}`);
      await page.locator('[data-row]').first().waitFor();
      await page.keyboard.press('j');
      const details = page.getByRole('region', { name: 'Details' });
      const heading = details.getByRole('heading', { level: 2 });
      const chosen = await heading.innerText();
      demand(chosen !== '' && new URL(page.url()).pathname.split('/').length > 3, `${path}: chosen in the address, not ${page.url()}`);
      await page.reload();
      await heading.waitFor();
      demand((await heading.innerText()) === chosen, `${path}: the same after a reload, not ${await heading.innerText()}`);
      await page.keyboard.press('Escape');
      await details.waitFor({ state: 'detached' });
    }
    await page.goto(`${url}/console/actions?show=all`);
    await page.locator('[data-row]', { hasText: 'tools.now' }).first().click();
    await page.getByText('"unix"').waitFor();
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of ['/inbox', '/actions?show=all', '/threads?show=all', '/tasks', '/memories']) {
      await page.goto(`${url}/console${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      demand(width[0] <= width[1], `${path}: nothing wider than the window: ${width}`);
    }
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
          found.push(...(await barriers(page, `${name}, ${colorScheme}, ${locale}`)));
          await picture(page, `${name}-${colorScheme}-${locale}`);
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
  ['inbox', '/inbox', 'main [data-row], main .notice'],
  ['actions', '/actions?show=all', '[data-row]'],
  ['threads', '/threads?show=all', '[data-row]'],
  ['tasks', '/tasks', 'main [data-row], main .notice'],
  ['memories', '/memories', 'main [data-row], main .notice'],
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
