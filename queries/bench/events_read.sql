-- Gives the parsed events by their epoch, which comes first, in the order of the sources.
copy (
    select epoch, number, side, id, revision, key, event_time, attributes, position
    from :"schema".bench_events
    order by epoch, number
) to stdout (format binary)
