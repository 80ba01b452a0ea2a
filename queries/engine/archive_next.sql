-- A number for an epoch that is higher than any that is in use, whatever became of some tables, and
-- the clock of the database. The shard's row must be locked.
select
    1 + greatest($3::bigint,
        (select max(h.epoch) from :"schema".shard h
         where h.generation_id = $1::integer and h.shard = $2::integer),
        (select max(e.epoch) from :"schema".epoch e
         where e.generation_id = $1::integer and e.shard = $2::integer),
        (select max(t.epoch) from :"schema".match_transition t
         where t.generation_id = $1::integer and t.shard = $2::integer),
        (select max(c.epoch) from :"schema".correction c
         where c.generation_id = $1::integer and c.shard = $2::integer),
        (select max(q.epoch) from :"schema".quarantine q
         where q.generation_id = $1::integer and q.shard = $2::integer)),
    clock_timestamp()
