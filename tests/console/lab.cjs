// Journeys over the river's history, the replay lab and dead letters; `journeys.cjs` runs them.
'use strict';

const { barriers, demand, open, picture, say, url } = require('./page.cjs');

module.exports = {
  /** Older events come as one scrolls up, and a place in the outline is gone to. */
  async history(browser) {
    const { context, page, wrong } = await open(browser);
    await context.addInitScript((user) => localStorage.setItem('kairo.user', user), `guest-${process.pid}`);
    await page.goto(`${url}/console/river?agent=default`);
    const list = page.getByRole('listbox', { name: 'Events' });
    const row = list.getByRole('option').first();
    await row.waitFor();
    const received = () => page.locator('[data-counts]').getAttribute('data-counts').then((counts) => Number(counts.split('=')[0]));
    const before = await received();
    demand(before >= 500, `a log that is longer than a page, not ${before}`);
    await list.evaluate((box) => (box.scrollTop = 0));
    await page.waitForFunction((count) => Number(document.querySelector('[data-counts]').dataset.counts.split('=')[0]) > count, before);

    await page.locator('.outline b').first().waitFor();
    const first = await page.locator('.outline').evaluate((strip) => {
      const { left, top, width } = strip.getBoundingClientRect();
      return { x: left + width / 2, y: top + 2 };
    });
    await page.mouse.click(first.x, first.y);
    await page.waitForFunction(() => document.querySelector('[role=listbox]').scrollTop < 600);
    await picture(page, 'river-history');
    await page.getByLabel('Go to place').fill('5');
    await page.getByLabel('Go to place').press('Enter');
    await list.getByRole('option').first().waitFor();
    await page.getByRole('button', { name: /Newest/ }).click();
    await page.getByRole('button', { name: /Newest/ }).waitFor({ state: 'detached' });
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What models were asked, decisions made again with another prompt, and a message that was not there. */
  async lab(browser) {
    const { page, wrong } = await open(browser, { bypassCSP: true });
    await page.goto(`${url}/console/chat/default`);
    await say(page, 'what time is it? time please');
    await page.goto(`${url}/console/replay/default`);
    await page.locator('#state').waitFor();
    await page.getByRole('button', { name: 'Previous decision' }).click();
    const requests = page.getByRole('region', { name: /What models were asked/ });
    await requests.getByText('system', { exact: true }).first().waitFor();
    await requests.getByText('As the model server was sent it').first().click();
    await requests.getByText('"messages"').first().waitFor();

    const shadow = page.getByRole('region', { name: 'Shadow' });
    await shadow.getByLabel('Prompt').fill('Answer in verse.');
    await shadow.getByRole('button', { name: 'Make the decisions again' }).click();
    await shadow.getByText('drifted').first().waitFor();
    await shadow.getByText(/would be another \(prompt\)/).first().waitFor();

    await page.getByRole('button', { name: 'Previous message', exact: true }).click();
    const whatif = page.getByRole('region', { name: 'What if' });
    await whatif.getByRole('button', { name: /^Had \d+ not been there/ }).click();
    await whatif.getByText('not there', { exact: true }).waitFor();
    await picture(page, 'lab');
    const found = await barriers(page, 'the lab');
    demand(found.length === 0, found.join('\n'));
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** An agent goes on apart from its log, beside what came of it there, once another fork has left its place. A reload shows the same. */
  async fork(browser) {
    const { page, wrong } = await open(browser, { bypassCSP: true });
    await page.goto(`${url}/console/chat/default`);
    const answer = await page.request.get(`${url}/v1/events?agent=default&latest=1`);
    const [{ sequence }] = (await answer.json()).events;
    await say(page, 'this stands in the log');
    await page.goto(`${url}/console/replay/default?at=${sequence}`);
    await page.locator('#state').waitFor();
    const fork = page.getByRole('region', { name: 'Fork', exact: true });
    const begin = fork.getByRole('button', { name: `Fork at ${sequence}` });
    const abandoned = await page.request.post(`${url}/v1/agents/default/forks`, { data: { at: sequence } });
    demand(abandoned.status() === 201, await abandoned.text());
    const { fork: id } = await abandoned.json();
    await begin.click();
    await fork.getByText(new RegExp(`gateway\\.max_forks.*${id}`)).waitFor();
    await fork.getByText('All 1 places are taken').waitFor();
    demand((await barriers(page, 'open forks')).length === 0, 'nothing keeps anybody out of the forks that are open');
    await fork.locator(`[data-fork="${id}"]`).getByRole('button', { name: `Close the fork of default at ${sequence}` }).click();
    await fork.getByText('0 of 1 that may be open at once.').waitFor();
    await begin.click();
    await fork.getByText(/^Forked from default at \d+/).waitFor();
    // The browser tells its console of the answer that there was no place.
    demand(wrong.length === 1 && wrong[0].includes('429'), wrong.join('\n'));

    const [original, own] = ['In the log', 'In the fork'].map((name) => fork.getByRole('region', { name }));
    const tell = async (words) => {
      await fork.getByLabel('Say something to the fork').fill(words);
      await fork.getByRole('button', { name: 'Say', exact: true }).click();
    };
    await original.getByText(/this stands in the log/).first().waitFor();
    await tell('and this apart from it');
    const replied = own.getByText(/You said: and this apart from it/);
    await replied.waitFor();
    await page.reload();
    await replied.waitFor();
    await fork.getByText('Nothing is left to be done.').waitFor();
    demand((await original.getByText(/apart from it/).count()) === 0, 'the log stays as it is');
    await fork.locator('[data-used]', { hasText: /^1 of 200 messages .* 1 of 50 calls of models/ }).waitFor();

    await tell('the day please');
    await fork.getByRole('heading', { name: 'default wants to call tools.date_calc' }).waitFor();
    await fork.getByText('"2026-11-26"').waitFor();
    await fork.scrollIntoViewIfNeeded();
    await picture(page, 'fork');
    const found = await barriers(page, 'a fork');
    demand(found.length === 0, found.join('\n'));
    await fork.getByRole('button', { name: 'Reject' }).click();
    await own.getByText(/^That is/).waitFor();
    await tell('the day please');
    await fork.getByRole('button', { name: 'Approve' }).click();
    await fork.getByLabel('Result, in JSON').fill('"a Sunday"');
    await fork.getByRole('button', { name: 'Give this result' }).click();
    await own.getByText(/^That is .*a Sunday/).waitFor();

    await fork.getByRole('button', { name: 'No timer is set' }).waitFor();
    await tell('remind me to stretch');
    await fork.getByRole('button', { name: /^Until the next timer/ }).click();
    await own.getByText('Time to stretch.').waitFor();
    await fork.getByRole('button', { name: 'End the fork' }).click();
    await fork.getByText('The fork has ended: it was ended.').waitFor();
    await fork.getByRole('button', { name: 'Put it away' }).click();
    await begin.waitFor();
    demand(wrong.length === 1, wrong.join('\n'));
  },

  /** Letters say what they are about, and are retried: one fails again, and one is dealt with now. */
  async letters(browser) {
    const { page, wrong } = await open(browser, { bypassCSP: true });
    await page.goto(`${url}/console/fleet`);
    const letters = page.getByRole('region', { name: 'Dead letters' });
    const retry = async (what, told) => {
      const letter = letters.locator('details', { hasText: what });
      await letter.locator('summary').click();
      await letter.getByText(what).last().waitFor();
      await letter.getByRole('button', { name: 'Retry' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
      await letter.getByText(told).first().waitFor();
      return letter;
    };
    await retry('hello?', 'failed again');
    const handled = await retry('the machine was full', 'dealt with');
    demand(await handled.getByRole('button', { name: 'Retry' }).isDisabled(), 'what was dealt with is not retried');
    await picture(page, 'letters');
    const found = await barriers(page, 'dead letters');
    demand(found.length === 0, found.join('\n'));
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** The river of one team alone, which stands in the address. */
  async team(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/river`);
    const rows = page.getByRole('listbox', { name: 'Events' }).getByRole('option');
    const ofOthers = rows.filter({ hasNotText: 'market' }).first();
    await ofOthers.waitFor();
    await page.getByLabel('Team').selectOption('market');
    await page.waitForURL(/team=market/);
    const isAlone = async () => {
      await ofOthers.waitFor({ state: 'detached' });
      await rows.filter({ hasText: 'market' }).first().waitFor();
    };
    await isAlone();
    await page.reload();
    await isAlone();
    await page.getByRole('button', { name: 'Clear' }).click();
    await ofOthers.waitFor();
    demand(wrong.length === 0, wrong.join('\n'));
  },
};
