-- What tally demo suggests to try in psql, one statement a line.
select * from :"schema".unmatched order by age desc limit 5;
select * from :"schema".breaks limit 5;
select epoch, kind, from_status, to_status, reason from :"schema".result_history where left_id = :'example' order by epoch, ordinal;
select * from :"schema".lag;
