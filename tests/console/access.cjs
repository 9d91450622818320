// Nothing keeps anybody out: every screen, empty, full and where the gateway answers nothing, in each language, light and dark, by all
// rules.
'use strict';

const { barriers, demand, enter, keys, open, picture, url } = require('./page.cjs');

/** Of these other journeys leave a picture that tells more. */
const TOLD = new Set(['chat', 'inbox', 'tasks', 'river', 'replay']);

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

/** Asks the gateway for nothing. */
const ASKS_NOTHING = new Set(['nowhere']);

/** What is shown now, in each language, light and dark; the page stays, and is left as it was. */
async function inEachWay(page, name, pictured = false) {
  const found = [];
  for (const locale of ['zh', 'en']) {
    await page.locator('.settings select').first().selectOption(locale);
    await page.waitForFunction((locale) => document.documentElement.lang.startsWith(locale), locale);
    for (const colorScheme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme });
      await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
      found.push(...(await barriers(page, `${name}, ${colorScheme}, ${locale}`)));
      if (pictured && name === 'graph' && locale === 'en' && colorScheme === 'dark') await picture(page, 'dark');
    }
  }
  if (pictured && !TOLD.has(name)) await picture(page, name);
  return found;
}

/** What was asked for is there, or is said not to be. */
async function settled(page) {
  await page.locator('main h1').waitFor();
  await page.waitForFunction(() => !document.querySelector('main').innerText.includes('Loading…'));
}

module.exports = {
  /** With all that the other journeys have left there. */
  async access(browser) {
    const { page, wrong } = await open(browser, { bypassCSP: true });
    const found = [];
    for (const [name, path, shown] of SCREENS) {
      await page.goto(`${url}/console${path}`);
      await page.locator(shown).first().waitFor();
      found.push(...(await inEachWay(page, name, true)));
      const outside = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
      demand(outside <= 0, `${name}: the screen scrolls, and not the page beside it, by ${outside}`);
    }
    demand(wrong.length === 0, wrong.join('\n'));
    demand(found.length === 0, found.join('\n'));
  },

  /** Before there is anything. */
  async empty(browser) {
    const { page, wrong } = await open(browser, { bypassCSP: true });
    const found = [];
    await page.goto(`${url}/console/`);
    await enter(page, keys[0]);
    // That nobody is known before.
    wrong.length = 0;
    for (const [name, path] of SCREENS) {
      await page.goto(`${url}/console${path}`);
      await settled(page);
      found.push(...(await inEachWay(page, `${name}, empty`)));
    }
    // Of an agent that is not there.
    demand(wrong.every((text) => text.includes('404')), wrong.join('\n'));
    demand(found.length === 0, found.join('\n'));
  },

  /** Where the gateway says that it cannot answer. */
  async failing(browser) {
    const { page } = await open(browser, { bypassCSP: true });
    const found = [];
    const problem = { type: 'about:blank', title: 'unavailable', status: 503, detail: 'the read model does not answer' };
    const body = JSON.stringify(problem);
    const isAsked = ({ pathname }) => pathname.startsWith('/v1/') && pathname !== '/v1/whoami';
    await page.route(isAsked, (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body }));
    for (const [name, path] of SCREENS) {
      await page.goto(`${url}/console${path}`);
      await settled(page);
      if (!ASKS_NOTHING.has(name)) await page.locator('main').getByText('does not answer').first().waitFor();
      found.push(...(await inEachWay(page, `${name}, failing`)));
    }
    demand(found.length === 0, found.join('\n'));
  },
};
