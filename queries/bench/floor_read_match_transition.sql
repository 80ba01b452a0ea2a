-- Gives the transitions by the epoch that wrote them, which comes first, in the order written.
copy (
    select t.epoch, t.* from :"schema".match_transition t order by t.epoch, t.ordinal
) to stdout (format binary)
