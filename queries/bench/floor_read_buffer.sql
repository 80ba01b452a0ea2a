-- Gives the buffer rows by the epoch that wrote them, which comes first, in the order written.
copy (
    select b.added_epoch, b.* from :"schema".buffer b order by b.added_epoch, b.side, b.id
) to stdout (format binary)
