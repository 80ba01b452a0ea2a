-- Which of the demo's schemas ($1) are there already.
select nspname::text from pg_namespace where nspname = any($1::text[]) order by nspname
