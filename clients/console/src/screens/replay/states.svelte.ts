// What an agent knew at places of its log. A place never changes, so what was asked for once is kept, as far as there is room.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { inTurn } from './turns';

export type State = Record<string, unknown>;
const KEPT = 50;

export class States {
  error = $state('');
  /** The newest that was shown, so that it stands while the next one comes. */
  shown = $state.raw<{ at: number; against: number; state: State; other: State } | null>(null);
  #kept = new Map<number, Promise<State>>();
  #wanted = 0;

  constructor(readonly agent: string) {}

  async show(at: number, against: number) {
    const turn = (this.#wanted += 1);
    try {
      const wanted = () => turn === this.#wanted;
      const [state, other] = await Promise.all([this.#of(at, wanted), this.#of(against, wanted)]);
      if (turn !== this.#wanted) return;
      this.shown = { at, against, state, other };
      this.error = '';
    } catch (error) {
      if (turn === this.#wanted) this.error = message(error);
    }
  }

  #of(at: number, wanted: () => boolean): Promise<State> {
    const kept = this.#kept.get(at);
    if (kept) return kept;
    const params = { path: { agent: this.agent }, query: { at } };
    const state = inTurn(() => asked(api.GET('/v1/agents/{agent}/state', { params })) as Promise<State>, wanted);
    this.#kept.set(at, state);
    state.catch(() => this.#kept.delete(at));
    const oldest = this.#kept.keys().next().value;
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return state;
  }
}
