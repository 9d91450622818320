// The colour of how it is with a task.
import type { TaskRow } from '$lib/api/types';

export const TONES: Record<TaskRow['status'], 'plain' | 'accent' | 'good' | 'warn' | 'bad' | 'note'> = {
  pending: 'accent',
  active: 'accent',
  in_progress: 'note',
  paused: 'warn',
  completed: 'good',
  canceled: 'plain',
  archived: 'plain',
  failed: 'bad',
};
