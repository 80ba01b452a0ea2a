-- Gives the server's version and the settings that decide what a commit costs.
select name, current_setting(name) from unnest(array[
    'server_version', 'shared_buffers', 'fsync', 'synchronous_commit', 'full_page_writes',
    'wal_level', 'wal_compression', 'max_wal_size', 'checkpoint_timeout'
]) as name
