-- Gives how far each file has been read, as far as it is committed.
select side, position::bigint from :"schema".source_offset
where source <> 'quarantine' and position <> ''
