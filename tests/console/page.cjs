// What journeys do with a page, and with the machine behind it.
'use strict';

const { mkdir, writeFile } = require('node:fs/promises');
const { join } = require('node:path');
const { createInterface } = require('node:readline');
const { source: axe } = require('axe-core');

const [program, url, journeys, ...keys] = process.argv.slice(2);
const screenshots = process.env.KAIRO_SCREENSHOTS;
/** Far above what anything needs, so that only a hang reaches it. */
const DEADLINE_MS = 60_000;

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

/** What keeps people out of what is shown now, by all rules, only by one, or by all except one. */
async function barriers(page, name, { only, except } = {}) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const rules = { ...(only && { runOnly: [only] }), ...(except && { rules: { [except]: { enabled: false } } }) };
  const { violations } = await page.evaluate((rules) => window.axe.run(document, { resultTypes: ['violations'], preload: false, ...rules }), rules);
  return violations.map(({ id, help, nodes }) => `${name}: ${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`);
}

async function picture(page, name) {
  if (!screenshots) return;
  await mkdir(screenshots, { recursive: true });
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
  await writeFile(join(screenshots, `${name}.webp`), data, 'base64');
  await devtools.detach();
}

/** Comes in with a key. */
async function enter(page, key) {
  await page.getByLabel('API key or token').fill(key);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Says something. */
async function tell(page, words) {
  await page.getByRole('textbox', { name: /^(Write to|写给)/ }).fill(words);
  await page.getByRole('button', { name: /^(Send|发送)$/ }).click();
}

/** Says something and waits until it is decided on and answered. What was said before is there first: its answers are no new ones. */
async function say(page, words) {
  await page.locator('[role=log][aria-busy=false]').waitFor();
  const [answers, decided] = await Promise.all(['[data-manner=answer]', '[data-stage=decided]'].map((what) => page.locator(what).count()));
  await tell(page, words);
  await page.locator('[data-manner=answer]').nth(answers).waitFor();
  // An answer is shown while it is written, and the message is decided on when it is whole.
  await page.locator('[data-stage=decided]').nth(decided).waitFor();
}

/** What the conversation shows: who said what, and how far it is. */
function conversation(page) {
  return page.locator('[role=log] article').evaluateAll((articles) =>
    articles.map(({ dataset, innerText }) => ({ ...dataset, text: innerText })),
  );
}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Has whoever started this do something about the machine, such as kill a service; returns what it says when it is done. */
async function want(what) {
  console.log(`want ${what}`);
  const { done, value } = await answers.next();
  demand(!done, `nobody is there to ${what}`);
  return value;
}

module.exports = { barriers, conversation, demand, enter, keys, journeys, open, picture, program, say, tell, url, want };
