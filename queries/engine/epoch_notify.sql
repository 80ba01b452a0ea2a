-- Tells listeners that an epoch was committed.
select pg_notify('tally_epoch', $1::text)
