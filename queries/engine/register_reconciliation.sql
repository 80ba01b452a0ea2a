-- Makes sure that the reconciliation exists and locks it until the transaction ends, so that two
-- workers that start at once register one after the other. Returns nothing.
insert into :"schema".reconciliation as r (name) values ($1::text)
on conflict (name) do update set name = r.name
