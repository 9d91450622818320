-- What each query goes by, made when the rows are there: cheaper than row by row. A query names its index where it stands.

CREATE INDEX events_of_agent ON events (agent, sequence, position) WHERE agent IS NOT NULL;
CREATE INDEX events_of_thread ON events (thread_id, sequence, position) WHERE thread_id IS NOT NULL;
CREATE INDEX events_of_chain ON events (correlation_id, sequence, position);
CREATE INDEX events_by_time ON events (ts);
-- Who thought what, was asked, or said nothing.
CREATE INDEX events_of_thinking ON events (agent, sequence, position) WHERE type IN (
    'kairo.agent.thought.v1', 'kairo.agent.submodule_asked.v1', 'kairo.agent.submodule_failed.v1',
    'kairo.agent.broadcast.v1');
CREATE INDEX events_of_submodules ON events (agent, sequence, position) WHERE type = 'kairo.agent.submodule_changed.v1';
CREATE INDEX threads_by_age ON threads (agent, last_sequence);
CREATE INDEX messages_sent ON messages (user_id, message_id) WHERE role = 'user' AND sequence IS NOT NULL;
CREATE INDEX messages_by_part ON messages USING gin (parts jsonb_path_ops) WHERE parts <> '[]';
CREATE INDEX messages_of_agent ON messages (agent, sequence, position) WHERE sequence IS NOT NULL;
CREATE INDEX actions_in_flight ON actions (agent, sequence) WHERE ended_at IS NULL;
CREATE INDEX processes_running ON processes (agent) WHERE ended_at IS NULL;
CREATE INDEX actions_in_doubt ON actions (agent, sequence) WHERE error_kind = 'in_doubt';
CREATE INDEX processes_of_agent ON processes (agent, sequence);
CREATE INDEX memories_of_agent ON memories (agent, day DESC NULLS LAST, sequence DESC, position DESC);
CREATE INDEX memories_by_place ON memories (day DESC NULLS LAST, sequence DESC, position DESC);
CREATE INDEX memories_by_word ON memories USING gin (words);
CREATE INDEX memories_by_form ON memories USING gin (forms);
CREATE INDEX memories_by_name ON memories USING gin (search_folded(named) gin_trgm_ops);
CREATE INDEX threads_of_user ON threads (user_id, last_sequence);
CREATE INDEX threads_by_id ON threads (thread_id);
CREATE INDEX threads_completed ON threads (agent, completed_at) WHERE kind = 'work' AND completed_at IS NOT NULL;
CREATE INDEX threads_by_last_event ON threads (last_sequence);
-- What is said to nobody, in threads of work, stands in events alone.
CREATE INDEX messages_of_thread ON messages (agent, thread_id, sequence) WHERE thread_id IS NOT NULL AND sequence IS NOT NULL;
CREATE INDEX actions_of_thread ON actions (agent, thread_id, sequence) WHERE thread_id IS NOT NULL;
CREATE INDEX chains_of_thread ON chains (agent, thread_id, sequence);
CREATE INDEX chains_of_task ON chains (task_id, sequence) WHERE task_id IS NOT NULL;
CREATE INDEX tasks_by_age ON tasks (sequence, position);
CREATE INDEX tasks_of_agent ON tasks (agent, sequence, position);
CREATE INDEX tasks_of_user ON tasks (user_id, sequence, position) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_in_queue ON tasks (agent, sequence, position)
    WHERE kind = 'queued' AND status IN ('pending', 'in_progress', 'paused');
CREATE INDEX tasks_at_work ON tasks (agent, changed_sequence) WHERE kind = 'queued' AND status = 'in_progress';
CREATE INDEX briefings_by_age ON briefings (sequence);
CREATE INDEX briefings_of_agent ON briefings (agent, sequence);
CREATE INDEX briefings_of_user ON briefings (user_id, sequence);
CREATE INDEX briefings_told ON briefings (user_id, sequence) WHERE told;
CREATE INDEX firings_of_task ON task_firings (task_id, sequence, position);
CREATE INDEX approvals_waiting ON approvals (user_id, sequence, position) WHERE status = 'waiting';
CREATE INDEX offers_open ON offers (user_id, sequence, position) WHERE choice IS NULL AND settled_at IS NULL;
CREATE INDEX approvals_by_age ON approvals (sequence, position);
CREATE INDEX approvals_of_agent ON approvals (agent, sequence);
CREATE INDEX approvals_of_user ON approvals (user_id, sequence);
CREATE INDEX actions_by_age ON actions (sequence);
CREATE INDEX actions_of_agent ON actions (agent, sequence);
CREATE INDEX processes_by_age ON processes (sequence);
CREATE INDEX model_calls_by_day ON model_calls (day);
CREATE INDEX model_calls_of_agent ON model_calls (agent, day);
CREATE INDEX model_calls_of_entry ON model_calls (correlation_id);
CREATE INDEX entries_of_key ON entries (entered_by);
CREATE INDEX messages_of_conversation ON messages (agent, user_id, sequence, position)
    WHERE sequence IS NOT NULL AND user_id IS NOT NULL;
-- For searching, and for what the search engine has yet to be given.
CREATE INDEX threads_by_word ON threads USING gin (words);
CREATE INDEX threads_by_likeness ON threads USING gin (search_folded(left(title, 1000) || ' ' || left(summary, 10000)) gin_trgm_ops);
CREATE INDEX threads_by_change ON threads (greatest(last_sequence, described_at, placed_at));
CREATE INDEX tasks_by_word ON tasks USING gin (words);
CREATE INDEX tasks_by_likeness ON tasks USING gin (search_folded(left(title, 1000) || ' ' || steps) gin_trgm_ops);
CREATE INDEX tasks_by_change ON tasks (changed_sequence);
CREATE INDEX memories_by_likeness ON memories USING gin (search_folded(left(named, 1000) || ' ' || left(content, 10000)) gin_trgm_ops);
CREATE INDEX memories_by_sequence ON memories (sequence);
CREATE INDEX messages_by_word ON messages USING gin (words);
CREATE INDEX messages_by_likeness ON messages USING gin (search_folded(left(text, 10000)) gin_trgm_ops);
CREATE INDEX messages_by_change ON messages (changed);
-- Threads that are shown by the beginning of their first message.
CREATE INDEX threads_untitled ON threads (agent, thread_id) WHERE title = '';
CREATE INDEX inner_state_of_agent ON inner_state (agent, sequence) WHERE NOT deleted;
CREATE INDEX inner_state_changes_of_key ON inner_state_changes (agent, key, sequence);
CREATE INDEX inner_state_by_word ON inner_state USING gin (words) WHERE NOT deleted;
CREATE INDEX inner_state_by_likeness ON inner_state USING gin (search_folded(key || ' ' || left(content, 10000)) gin_trgm_ops) WHERE NOT deleted;
CREATE INDEX inner_state_by_sequence ON inner_state (sequence);
-- What is held of a user.
CREATE INDEX messages_of_user ON messages (user_id, sequence, position) WHERE user_id IS NOT NULL AND sequence IS NOT NULL;
CREATE INDEX memory_versions_of_memory ON memory_versions (agent, memory_id, sequence, position);
CREATE INDEX memories_of_user ON memories (user_id, sequence, position) WHERE user_id IS NOT NULL;
CREATE INDEX inner_state_changes_of_user ON inner_state_changes (user_id, sequence, position) WHERE user_id <> '';
CREATE INDEX model_calls_of_user ON model_calls (user_id, sequence) WHERE user_id IS NOT NULL;
CREATE INDEX model_calls_of_thread ON model_calls (agent, thread_id, sequence) WHERE user_id IS NULL;
CREATE INDEX offers_of_user ON offers (user_id, sequence);
CREATE INDEX actions_outside_threads ON actions (correlation_id) WHERE thread_id IS NULL;
