// What is wrong with a request, as the gateway says it (RFC 9457).
import type { components } from './openapi';

export type Problem = components['schemas']['Problem'];

export class ProblemError extends Error {
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(status: number, problem?: Problem) {
    super(told(status, problem));
    this.status = status;
    this.problem = problem;
  }
}

/** In one line, for people: every field that is wrong, and what was expected of it. */
export function told(status: number, problem?: Problem): string {
  if (!problem) return `HTTP ${status}`;
  const fields = (problem.errors ?? []).map(({ field, expected }) => `${field}: ${expected}`);
  return [problem.detail, ...fields].join('; ');
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The problem in the body of an answer; none where there is none. */
export async function problemOf(answer: Response): Promise<ProblemError> {
  const body: unknown = await answer.json().catch(() => undefined);
  const isProblem = typeof body === 'object' && body !== null && 'detail' in body;
  return new ProblemError(answer.status, isProblem ? (body as Problem) : undefined);
}
