// A user's inbox as the gateway has it, and the user's answers.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { atLeast, kinds, Query } from '$lib/query.svelte';
import { items, type Item } from './items';

/** Decided calls that are shown, the newest. */
const DECIDED = 100;
const concerns = kinds('agent.approv', 'agent.choice', 'agent.briefed', 'agent.action', 'chain.', 'thread.suggested', 'thread.matched');

export type Sent = 'sending' | 'sent' | { failed: string };

export class Live extends Query<Awaited<ReturnType<typeof ask>>> {
  /** What became of one's own answers, by item. */
  sent = $state<Record<string, Sent>>({});

  constructor(readonly user: string) {
    super((sequence) => ask(user, sequence), { concerns });
  }

  async decide(item: Item, yes: boolean, note = '') {
    const now = this.sent[item.id];
    if (item.kind === 'briefing' || now === 'sending' || now === 'sent') return;
    this.sent[item.id] = 'sending';
    const { user } = this;
    const { agent } = item.row;
    try {
      const request =
        item.kind === 'approval'
          ? api.POST('/v1/approvals', { body: { user, agent, action_id: item.id, verdict: yes ? 'approved' : 'rejected', ...(note && { note }) } })
          : api.POST('/v1/choices', { body: { user, agent, offer_id: item.id, option: yes ? 'accept' : 'decline' } });
      await asked<{ sequence: number }>(request);
      this.sent[item.id] = 'sent';
    } catch (error) {
      this.sent[item.id] = { failed: message(error) };
    }
  }
}

async function ask(user: string, sequence?: number) {
  const place = atLeast(sequence);
  const [inbox, consents] = await Promise.all([
    asked(api.GET('/v1/inbox', { params: { query: { user, ...place } } })),
    asked(api.GET('/v1/approvals', { params: { query: { user, limit: DECIDED, ...place } } })),
  ]);
  const all = items({ waiting: inbox.approvals, offers: inbox.offers, told: inbox.briefings, consents: consents.approvals });
  return { ...all, position: Math.min(inbox.position, consents.position) };
}
