-- Gives the manifests by their epoch, which comes first.
copy (
    select e.epoch, e.* from :"schema".epoch e order by e.epoch
) to stdout (format binary)
