-- What those who may only read can ask of projector. Each of these changes the registry in the name of its owner, just as
-- far as `kairo projections` needs: nobody else has to be let in to write there.

-- Enters another generation of a projection, in a version, which is to be built. None if one is being built already.
CREATE FUNCTION request_rebuild(text, integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO generations (generation, projection, version, place, state) OVERRIDING SYSTEM VALUE
    SELECT number, $1, $2, 'kairo_' || number, 'asked'
    FROM nextval(pg_get_serial_sequence('generations', 'generation')) AS number
    ON CONFLICT DO NOTHING RETURNING generation
$$;

-- Has the generation of a projection, in a version, that was found to differ swapped in all the same; none if there is none.
CREATE FUNCTION request_swap(text, integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE generations SET state = 'ready', since = now()
    WHERE projection = $1 AND version = $2 AND state = 'differing' RETURNING generation
$$;

-- Has a generation removed. One that is live may go when a newer version has one, which is of those who still ask it.
CREATE FUNCTION request_drop(bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH dropped AS (
        UPDATE generations SET state = 'dropping', since = now()
        WHERE generation = $1 AND state <> 'dropping' AND (state <> 'live' OR EXISTS (
            SELECT FROM generations AS newer
            WHERE newer.projection = generations.projection AND newer.version > generations.version
                AND newer.state = 'live'
        ))
        RETURNING generation
    )
    SELECT EXISTS (SELECT FROM dropped)
$$;

-- projector lets in who may.
REVOKE ALL ON FUNCTION request_rebuild(text, integer), request_swap(text, integer), request_drop(bigint) FROM PUBLIC;
