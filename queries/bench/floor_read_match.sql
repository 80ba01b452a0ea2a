-- Gives the result rows by the epoch that wrote them, which comes first, in the order written.
copy (
    select m.opened_epoch, m.* from :"schema".match m order by m.opened_epoch, m.bucket, m.match_id
) to stdout (format binary)
