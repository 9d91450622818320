-- Enough rows that reading a whole table costs more than any index: of 200 agents, 500 users and 2000 threads.
INSERT INTO log (sequence, subject, headers, payload, stored)
SELECT i, 'kairo.agent.a', '', '', 'epoch'::timestamptz + i * interval '1 s' FROM generate_series(1, 40000) AS i;

INSERT INTO events (sequence, position, event_id, ts, agent, thread_id, correlation_id, type)
SELECT i, 0, gen_random_uuid(), 'epoch'::timestamptz + i * interval '1 s', 'a' || i % 200, 't' || i % 2000,
       md5((i / 6)::text)::uuid, CASE i % 50 WHEN 0 THEN 'kairo.agent.thought.v1' WHEN 1 THEN 'kairo.agent.submodule_changed.v1'
       ELSE 'kairo.agent.action.v1' END
FROM generate_series(1, 40000) AS i;

INSERT INTO agents (agent, profile, sequence, defined_at) SELECT 'a' || i, '{}', i, now() FROM generate_series(0, 5000) AS i;

INSERT INTO threads (agent, thread_id, user_id, kind, standing, title, created_at, updated_at, last_sequence)
SELECT 'a' || i % 200, 't' || i, 'u' || i % 500, 'topic', 'active', 'words', now(), now(), i
FROM generate_series(0, 20000) AS i;

INSERT INTO threads (agent, thread_id, user_id, kind, standing, title, created_at, updated_at, last_sequence, completed_at)
SELECT 'a' || i % 200, 'w' || i, 'u' || i % 500, 'work', 'completed', 'words', now(), now(), i,
       'epoch'::timestamptz + i * interval '1 s'
FROM generate_series(0, 20000) AS i;

INSERT INTO teams (agent, status, reason, over_budget, changed_at, changed_sequence)
SELECT 'a' || i, 'paused', '', false, now(), i FROM generate_series(0, 5000) AS i;

INSERT INTO briefings (event_id, sequence, agent, user_id, told, reason, summary, briefed_at)
SELECT md5(i::text)::uuid, i, 'a' || i % 200, 'u' || i % 500, i % 10 = 7, 'words', '', now()
FROM generate_series(0, 20000) AS i;

INSERT INTO messages (event_id, sequence, ts, correlation_id, role, user_id, message_id, text, addressed_to, named_thread)
SELECT md5(i::text)::uuid, i, now(), md5(i::text)::uuid, CASE WHEN i % 2 = 0 THEN 'user' ELSE 'agent' END, 'u' || i % 500,
       'm' || i, 'words', 'a' || i % 200, 't' || i % 2000
FROM generate_series(1, 40000) AS i;

INSERT INTO actions (action_id, sequence, agent, thread_id, correlation_id, tool, arguments, decided_at, invoked_at,
                     ended_at, ok, error_kind)
SELECT md5(i::text)::uuid, i, 'a' || i % 200, 't' || i % 2000, gen_random_uuid(), 'tools.now', '{}', now(), now(),
       CASE WHEN i % 100 > 0 THEN now() END, CASE WHEN i % 100 > 0 THEN i % 100 > 1 END,
       CASE WHEN i % 100 = 1 THEN 'in_doubt' END
FROM generate_series(1, 40000) AS i;

INSERT INTO processes (process_id, action_id, agent, supervisor, background, sequence, started_at, ended_at, outcome)
SELECT md5(i::text)::uuid, md5(i::text)::uuid, 'a' || i % 200, 's', false, i, now(), CASE WHEN i % 100 > 0 THEN now() END,
       CASE WHEN i % 100 > 0 THEN 'exited' END
FROM generate_series(1, 20000) AS i;

INSERT INTO memories (agent, memory_id, event_id, sequence, position, updated_at, kind, subject, content, day, definition,
                      named)
SELECT 'a' || i % 200, md5(i::text)::uuid, gen_random_uuid(), i, 0, now(), 'fact', 'subject ' || md5(i::text),
       'content ' || md5((i / 3)::text), '2026-01-01'::date + i % 300,
       jsonb_build_object('keywords', ARRAY['launch', 'spring'], 'source_event_ids', ARRAY[md5(i::text)::uuid]),
       'subject ' || md5(i::text)
FROM generate_series(1, 20000) AS i;

INSERT INTO memory_versions (event_id, sequence, position, agent, memory_id, updated_at, user_id, kind, subject, content, definition)
SELECT md5(i::text)::uuid, i, 0, 'a' || (i / 4) % 200, md5((i / 4)::text)::uuid, now(), 'u' || i % 500, 'fact', '',
       'content ' || md5(i::text), '{}'
FROM generate_series(1, 40000) AS i;

INSERT INTO inner_state_changes (event_id, sequence, position, agent, user_id, key, content, deleted, updated_at, definition)
SELECT gen_random_uuid(), i, 0, 'a' || i % 200, 'u' || i % 500, 'k' || i % 1000, 'content ' || md5(i::text), i % 10 = 0, now(),
       '{"related_keys": ["k1"]}'
FROM generate_series(1, 40000) AS i;

INSERT INTO inner_state (agent, user_id, key, event_id, sequence, position, content, deleted, updated_at, definition)
SELECT DISTINCT ON (agent, user_id, key) agent, user_id, key, event_id, sequence, position, content, deleted, updated_at,
       definition
FROM inner_state_changes ORDER BY agent, user_id, key, sequence DESC;

INSERT INTO chains (chain_id, sequence, position, agent, thread_id, correlation_id, origin, task_id, plan, started_at)
SELECT md5(i::text)::uuid, i, 0, 'a' || i % 200, 't' || i % 2000, gen_random_uuid(), 'plan', md5((i / 9)::text)::uuid, '',
       now()
FROM generate_series(1, 20000) AS i;

INSERT INTO chain_steps (chain_id, step, group_no, event, params)
SELECT md5(i::text)::uuid, step, step, 'tools.now', '{}' FROM generate_series(1, 10000) AS i, generate_series(0, 2) AS step;

INSERT INTO tasks (task_id, sequence, position, agent, user_id, correlation_id, kind, title, action, definition, created_at,
                   changed_sequence, changed_at, status)
SELECT md5(i::text)::uuid, i, 0, 'a' || i % 200, 'u' || i % 500, gen_random_uuid(),
       CASE WHEN i % 7 = 0 THEN 'queued' ELSE 'scheduled' END, 'words', '[]', '{"source": "user"}', now(), i, now(),
       CASE WHEN i % 700 = 0 THEN 'in_progress' WHEN i % 70 = 0 THEN 'pending' WHEN i % 7 = 0 THEN 'completed' ELSE 'active' END
FROM generate_series(1, 20000) AS i;

INSERT INTO task_firings (event_id, sequence, position, task_id, fired_at, late)
SELECT gen_random_uuid(), i, 0, md5((i / 3)::text)::uuid, now(), false FROM generate_series(1, 40000) AS i;

INSERT INTO approvals (action_id, sequence, position, agent, user_id, correlation_id, tool, arguments, chain_id, step,
                       requested_at, outside, verdict, decided_sequence)
SELECT md5(i::text)::uuid, i, 0, 'a' || i % 200, 'u' || i % 500, gen_random_uuid(), 'email.send', '{}', md5(i::text)::uuid,
       0, now(), '["mcp:all"]', CASE WHEN i % 50 > 0 THEN 'approved' END, CASE WHEN i % 50 > 0 THEN i + 1 END
FROM generate_series(1, 20000) AS i;

INSERT INTO offers (offer_id, sequence, position, agent, user_id, correlation_id, definition, offered_at, choice)
SELECT md5(i::text)::uuid, i, 0, 'a' || i % 200, 'u' || i % 500, md5(i::text)::uuid, '{"action": "suggest_new"}', now(),
       CASE WHEN i % 50 > 0 THEN 'accept' END
FROM generate_series(1, 20000) AS i;

INSERT INTO model_calls (event_id, call, sequence, agent, thread_id, user_id, tier, model, module, decided_at, input_tokens,
                         output_tokens, latency_ms, cached_tokens, is_estimate, correlation_id)
SELECT gen_random_uuid(), 0, i, 'a' || i % 200, 't' || i % 2000, 'u' || i % 500, 'heavy', 'm', 'c' || i % 3, '2026-01-01'::timestamptz
       + i * interval '2 min', 1, 1, 1, 0, false, gen_random_uuid()
FROM generate_series(1, 40000) AS i;

INSERT INTO entries (correlation_id, entered_by)
SELECT correlation_id, 'api_key:k' || sequence % 500 FROM model_calls;

-- What an index still has to sort in costs a query as much as a table.
SELECT gin_clean_pending_list('memories_by_word'), gin_clean_pending_list('memories_by_name');
ANALYZE;
