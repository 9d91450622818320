-- How texts are compared by a search, as kairo_read_model::search does it with its words. The functions are never changed: columns
-- and indexes hold what they made. A change is another function, under another name. They know each other by more than their names,
-- so that tables can be restored from a dump.

-- For the letters that differ in misspelt words. Trusted since Postgres 13, as pg_trgm is.
CREATE EXTENSION IF NOT EXISTS fuzzystrmatch;

-- A text without case, width and accents, each letter written in one part; see search/folding.rs. Of ASCII, which most texts are,
-- that is its small letters.
CREATE FUNCTION search_folded(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN octet_length($1) = char_length($1) THEN lower($1) ELSE
        normalize(replace(replace(translate(lower(regexp_replace(regexp_replace(normalize($1, NFKD),
        -- What makes no difference to any word.
        '[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc'
        '\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200b-\u200f\u202a-\u202e\u2060-\u2064'
        '\u20d0-\u20f0\ufe00-\ufe0f\ufeff]+', '', 'g'),
        -- Accents of Latin and Greek letters.
        '([A-Za-z\u00c0-\u02af\u0370-\u03ff\u1e00-\u1fff])[\u0300-\u036f]+', '\1', 'g')),
        'ςıىةٱ', 'σiيها'), 'æ', 'ae'), 'œ', 'oe'), NFC) END;

-- A text of which nothing but words is left, so that what looks like a tag, an address or a number with a sign is read as its words.
CREATE FUNCTION search_spaced(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN octet_length($1) = char_length($1) THEN regexp_replace($1, '[^A-Za-z0-9]+', ' ', 'g') ELSE
        regexp_replace(normalize($1, NFKC),
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u055a-\u055f'
        '\u0589\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e4f\u0e5a\u0e5b\u2010-\u2029'
        '\u202f-\u205f\u20a0-\u20cf\u2190-\u245f\u2500-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d\u30a0\u30fb'
        '\U0001f000-\U0001faff]+', ' ', 'g') END;

-- The words of a text, for a text search vector.
CREATE FUNCTION search_words(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN search_spaced(search_folded($1));

-- Letters to change, add, leave out or swap with the next one to make one word of the other.
CREATE FUNCTION search_errors(one text, other text) RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    ones text[] := string_to_array(one, NULL);
    others text[] := string_to_array(other, NULL);
    width integer := coalesce(array_length(others, 1), 0);
    before integer[];
    above integer[] := ARRAY(SELECT generate_series(0, width));
    line integer[];
    least_errors integer;
BEGIN
    FOR i IN 1 .. coalesce(array_length(ones, 1), 0) LOOP
        line := ARRAY[i];
        FOR j IN 1 .. width LOOP
            least_errors := least(above[j] + (ones[i] <> others[j])::integer, above[j + 1] + 1, line[j] + 1);
            IF i > 1 AND j > 1 AND ones[i - 1] = others[j] AND ones[i] = others[j - 1] THEN
                least_errors := least(least_errors, before[j - 1] + 1);
            END IF;
            line := line || least_errors;
        END LOOP;
        before := above;
        above := line;
    END LOOP;
    RETURN above[width + 1];
END
$$;

-- Whether one of these words, or the beginning of one, is this word with at most so many errors. A wrong first letter counts twice.
CREATE FUNCTION search_resembles(words tsvector, word text, most integer, begins boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN EXISTS (
        SELECT FROM (
            SELECT DISTINCT left(lexeme, length) AS one
            FROM unnest(tsvector_to_array($1)) AS lexeme,
                generate_series(char_length($2) - $3, char_length($2) + $3) AS length
            WHERE char_length(lexeme) = length OR $4 AND char_length(lexeme) > length
        ) AS ones,
        LATERAL (SELECT $3 - (left(one, 1) <> left($2, 1))::integer AS allowed) AS first,
        -- Two letters that are swapped are two changes for it.
        LATERAL (SELECT levenshtein_less_equal(one, $2, 2 * allowed) AS changes) AS changed
        WHERE allowed > 0
            AND CASE WHEN changes <= allowed THEN true WHEN changes <= 2 * allowed THEN search_errors(one, $2) <= allowed ELSE false END
    );
