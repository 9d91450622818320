// What one does while agents work: consents, tasks, threads, and words in the middle of a long job.
'use strict';

const { demand, open, picture, say, tell, url } = require('./page.cjs');

/** A page of a user of its own, so that nothing is mixed up with what others did before. */
async function as(browser, name) {
  const opened = await open(browser);
  const user = `${name}-${process.pid}`;
  await opened.context.addInitScript((user) => localStorage.setItem('kairo.user', user), user);
  return { ...opened, user };
}

module.exports = {
  /** A call waits for consent in the inbox; `y` approves it, and the conversation goes on. */
  async approval(browser) {
    const { context, page, wrong } = await as(browser, 'approver');
    await page.goto(`${url}/console/chat/careful`);
    await tell(page, 'the day please');
    const inbox = await context.newPage();
    await inbox.goto(`${url}/console/inbox`);
    await inbox.locator('[data-row]', { hasText: 'tools.date_calc' }).click();
    await inbox.getByRole('heading', { name: 'careful wants to call tools.date_calc' }).waitFor();
    await inbox.getByText('No content from outside was seen').waitFor();
    await picture(inbox, 'inbox');
    await inbox.keyboard.press('y');
    await inbox.locator('[data-status=approved]').waitFor();
    await page.locator('[data-manner=answer]', { hasText: 'That is' }).waitFor();
    await page.locator('details[data-stage=done]', { hasText: 'tools.date_calc' }).waitFor();
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What is to happen later stands among the tasks, and is run before its time. */
  async task(browser) {
    const { page, wrong } = await as(browser, 'planner');
    await page.goto(`${url}/console/chat/default`);
    await say(page, 'remind me to stretch');
    await page.getByRole('link', { name: 'Tasks' }).first().click();
    await page.locator('[data-row]').first().click();
    const details = page.getByRole('region', { name: 'Details' });
    await details.getByRole('button', { name: 'Run now' }).click();
    await details.getByText('When it fired').waitFor();
    await picture(page, 'tasks');
    await page.goBack();
    await page.goBack();
    await page.locator('[data-manner=unasked]', { hasText: 'stretch' }).waitFor();
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** A message that seems to be about something else is put to the user, and opens a thread of its own. */
  async threads(browser) {
    const { page, wrong } = await as(browser, 'talker');
    await page.goto(`${url}/console/chat/topics`);
    await say(page, 'about the meeting');
    await tell(page, 'a dentist question');
    await page.getByRole('link', { name: 'Inbox' }).first().click();
    await page.locator('[data-row]', { hasText: 'a dentist question' }).click();
    await page.getByRole('heading', { name: 'This seems to be something new' }).waitFor();
    await page.getByRole('button', { name: /^Accept/ }).click();
    await page.getByText('This waits no more').waitFor();
    await page.goto(`${url}/console/chat/topics`);
    await page.locator('[data-manner=answer]', { hasText: 'You said: a dentist question' }).waitFor();
    await page.goto(`${url}/console/threads?agent=topics&show=all`);
    await page.locator('[data-row]').nth(1).waitFor();
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** A long job goes on while one asks something else, and is stopped with a click. */
  async interjection(browser) {
    const { page, wrong } = await as(browser, 'builder');
    await page.goto(`${url}/console/chat/default`);
    await say(page, 'start the build');
    const job = page.locator('[data-action]', { hasText: 'process.spawn' });
    await job.locator('.last', { hasText: 'half way' }).waitFor();
    await say(page, 'what time is it? time please');
    demand((await job.count()) === 1, 'the job goes on beside it');
    await picture(page, 'interjection');
    await page.reload();
    await job.locator('.last', { hasText: 'half way' }).waitFor();
    await job.getByRole('button', { name: 'Stop process.spawn' }).click();
    await page.locator('details[data-stage=stopped]', { hasText: 'process.spawn' }).waitFor();
    await job.waitFor({ state: 'detached' });
    demand(wrong.length === 0, wrong.join('\n'));
  },
};
