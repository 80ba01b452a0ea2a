-- Creates the roles that share the work on the schema, where they are not there yet, and grants them
-- what they need. The roles cannot log in: grant them to those who do.
--
-- tally_owner owns the schema and runs migrations. tally_worker runs tally run: it reads and writes
-- rows and changes no table. tally_reader sees the views and calls the functions.
do $roles$
declare
    here oid := (select typnamespace from pg_type
        where oid = pg_typeof(null:::"schema".serving)::oid);
    r record;
begin
    for r in
        select wanted from unnest(array['tally_owner', 'tally_worker', 'tally_reader']) as wanted
        where not exists (select from pg_roles where rolname = wanted)
    loop
        execute format('create role %I nologin', r.wanted);
    end loop;
    execute format('grant usage on schema %s to tally_worker, tally_reader', here::regnamespace);
    for r in
        select c.oid::regclass as name, c.relkind, c.relname from pg_class c
        where c.relnamespace = here and c.relkind in ('r', 'v')
    loop
        if r.relname = 'goose_db_version' then
            -- Every command looks there whether the schema is the one it knows.
            execute format('grant select on %s to tally_worker, tally_reader', r.name);
        elsif r.relkind = 'v' then
            execute format('grant select on %s to tally_worker, tally_reader', r.name);
        else
            execute format('grant select, insert, update, delete on %s to tally_worker', r.name);
        end if;
    end loop;
    for r in select p.oid::regprocedure as name from pg_proc p where p.pronamespace = here loop
        execute format('grant execute on function %s to tally_worker, tally_reader', r.name);
    end loop;
    if not pg_has_role(current_user, 'tally_owner', 'member') then
        execute format('grant tally_owner to %I', current_user);
    end if;
    execute format('grant create on database %I to tally_owner', current_database());
    execute format('alter schema %s owner to tally_owner', here::regnamespace);
    for r in
        select c.oid::regclass as name, c.relkind from pg_class c
        where c.relnamespace = here and c.relkind in ('r', 'v')
    loop
        execute format('alter %s %s owner to tally_owner',
            case r.relkind when 'r' then 'table' else 'view' end, r.name);
    end loop;
    for r in select p.oid::regprocedure as name from pg_proc p where p.pronamespace = here loop
        execute format('alter function %s owner to tally_owner', r.name);
    end loop;
end
$roles$
