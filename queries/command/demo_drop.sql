-- Removes one schema of the demo with all in it.
drop schema if exists :"schema" cascade
