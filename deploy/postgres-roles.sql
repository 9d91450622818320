-- The roles of Kairo's services in Postgres 14 or newer, to be run as superuser in Kairo's database, as often as one likes:
--   kairo_projector     owns the database and all in it
--   kairo_gateway       may read, and ask for read models to be built, swapped in and removed
--   kairo_tool_runner   may read what memory.search needs
-- What the latter two may do is granted by projector (crates/read-model/src/readers.rs), when it starts and with all that
-- it makes. They have no passwords yet: see postgres-passwords.sql.
-- What another role made here before, as where all services were one role, becomes projector's.

DO $$
DECLARE
    made text;
BEGIN
    FOREACH made IN ARRAY ARRAY['kairo_projector', 'kairo_gateway', 'kairo_tool_runner'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = made) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', made);
        END IF;
    END LOOP;

    EXECUTE format('ALTER DATABASE %I OWNER TO kairo_projector', current_database());
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO kairo_gateway, kairo_tool_runner', current_database());

    FOR made IN
        SELECT format('ALTER SCHEMA %I OWNER TO kairo_projector', nspname)
        FROM pg_namespace WHERE nspname ~ '^(public|kairo|kairo_[0-9]+)$'
        UNION ALL
        -- Their indexes and sequences go with them.
        SELECT format('ALTER TABLE %s OWNER TO kairo_projector', pg_class.oid::regclass)
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname ~ '^(public|kairo|kairo_[0-9]+)$' AND relkind IN ('r', 'v')
        UNION ALL
        SELECT format('ALTER FUNCTION %s OWNER TO kairo_projector', pg_proc.oid::regprocedure)
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname ~ '^(request|search)_'
    LOOP
        EXECUTE made;
    END LOOP;
END
$$;

-- Until Postgres 15 everybody may create there.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO kairo_gateway, kairo_tool_runner;
