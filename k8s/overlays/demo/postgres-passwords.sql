-- The passwords of the roles that postgres-roles.sql makes, from the environment, for psql 15 or newer.
\set ON_ERROR_STOP on
\getenv projector POSTGRES_PASSWORD_PROJECTOR
\getenv gateway POSTGRES_PASSWORD_GATEWAY
\getenv tool_runner POSTGRES_PASSWORD_TOOL_RUNNER
-- One that is missing is an error here.
ALTER ROLE kairo_projector PASSWORD :'projector';
ALTER ROLE kairo_gateway PASSWORD :'gateway';
ALTER ROLE kairo_tool_runner PASSWORD :'tool_runner';
