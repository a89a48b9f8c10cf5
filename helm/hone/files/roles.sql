-- Written by `npm run generate` from libs/storage/src/roles.ts.
-- Run once, when the database is made: a role for each service that keeps rows, which owns the schema of its name.
create role trainer login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'trainer_password';
create role tracer login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'tracer_password';
revoke all on database "hone" from public;
grant connect, create on database "hone" to trainer, tracer;
revoke all on schema public from public;
