-- Makes pg_temp.damage, which changes one row of a state table by hand: picks a row and a column by
-- chance and updates it, deletes the row, or inserts a copy of it under another key. Only rows that a
-- start has to look at: live ones of the buffer, and of the other tables those of the newest epochs.
-- Columns that say nothing about the state are left alone. Returns what it did, null for nothing.
create or replace function pg_temp.damage(what text, operation text, chance bigint)
returns text language plpgsql as $body$
declare
    newest bigint := (select max(epoch) from :"schema".shard);
    schema_name text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = ':"schema".shard'::regclass);
    relation regclass := format('%I.%I', schema_name, what)::regclass;
    eligible text := case what
        when 'buffer' then format('retired_epoch is null and added_epoch <= %s and horizon >= %L',
            newest, (select max(watermark) from :"schema".shard))
        when 'match' then format('changed_epoch > %s', newest - 4)
        when 'shard' then 'true'
        when 'source_offset' then 'true'
        when 'epoch' then format('status = ''committed'' and epoch > %s', newest - 4)
        else format('epoch in (select epoch from %I.epoch where status = ''committed''
            and epoch > %s)', schema_name, newest - 4) end;
    identity text := case what
        when 'buffer' then 'concat_ws('' '', x.side, x.id, x.added_epoch)'
        when 'match' then 'x.match_id::text'
        when 'source_offset' then 'concat_ws('' '', x.side, x.source)'
        when 'shard' then 'x.shard::text'
        when 'epoch' then 'x.epoch::text'
        else 'concat_ws('' '', x.epoch, x.ordinal)' end;
    place tid;
    row_text text;
    c record;
    expression text;
    changed jsonb;
    updated integer;
begin
    execute format('select x.ctid, left(to_jsonb(x)::text, 300) from %s x where %s
        order by md5(%s || %L) limit 1', relation, eligible, identity, chance)
        into place, row_text;
    if place is null then
        return null;
    end if;
    if operation = 'delete' then
        execute format('delete from %s where ctid = %L', relation, place);
        return format('delete %s', row_text);
    end if;
    if operation = 'insert' then
        changed := case what
            when 'buffer' then '{"id": "inserted by hand"}'::jsonb
            when 'match' then jsonb_build_object('match_id', '\x' || repeat('ab', 32))
            when 'source_offset' then '{"source": "inserted by hand"}'::jsonb
            when 'shard' then '{"shard": 77}'::jsonb
            when 'epoch' then jsonb_build_object('epoch', newest + 1)
            else '{"ordinal": 77777}'::jsonb end;
        execute format('insert into %1$s select (jsonb_populate_record(x, %2$L)).* from %1$s x
            where ctid = %3$L', relation, changed, place);
        return format('insert a copy with %s of %s', changed, row_text);
    end if;
    for c in
        select quote_ident(a.attname) as name, format_type(a.atttypid, a.atttypmod) as type
        from pg_attribute a
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
            and a.attname not in ('generation_id', 'shard', 'spilled', 'attempt_id', 'worker',
                'lease_until', 'requested_by', 'fencing_token', 'purged_epoch', 'resolved_by',
                'repaired', 'released_seq', 'released_at')
            and not (a.attname = 'status' and what in ('correction', 'quarantine'))
        order by md5(a.attname || chance)
    loop
        expression := case c.type
            when 'boolean' then 'not %1$s'
            when 'bytea' then 'set_byte(%1$s, length(%1$s) - 1, get_byte(%1$s, length(%1$s) - 1) # 1)'
            when 'json' then '(coalesce(%1$s::text, ''[]'') || '' '')::json'
            when 'text' then 'coalesce(%1$s, '''') || ''x'''
            when 'timestamp with time zone' then 'case when isfinite(%1$s)
                then %1$s + interval ''1 microsecond'' else ''2001-01-01Z'' end'
            else 'coalesce(%1$s, 0) + 1' end;
        begin
            execute format('update %s set %s = ' || format(expression, c.name) || ' where ctid = %L',
                relation, c.name, place);
            return format('update %s of %s', c.name, row_text);
        exception when check_violation then
            -- One of a few words: another of them that the column has.
            begin
                execute format('update %1$s x set %2$s = y.%2$s from (select distinct %2$s from %1$s) y
                    where x.ctid = %3$L and y.%2$s <> x.%2$s', relation, c.name, place);
                get diagnostics updated = row_count;
                if updated > 0 then
                    return format('update %s of %s', c.name, row_text);
                end if;
            exception when others then
                continue;
            end;
        when others then
            continue;
        end;
    end loop;
    return null;
end
$body$;

-- Copies a table, as a backup would, and puts what it held back.
create or replace function pg_temp.keep(what text) returns void language plpgsql as $body$
begin
    execute 'drop table if exists pg_temp.kept';
    execute format('create temporary table kept as select * from :"schema".%I', what);
end
$body$;

create or replace function pg_temp.put_back(what text) returns void language plpgsql as $body$
begin
    if what = 'shard' then -- its lease is another's by now
        delete from :"schema".shard where shard = 77;
        update :"schema".shard s set epoch = k.epoch, watermark = k.watermark
        from kept k where s.generation_id = k.generation_id and s.shard = k.shard;
        return;
    end if;
    execute format('delete from :"schema".%I', what);
    execute format('insert into :"schema".%I select * from kept', what);
end
$body$
