-- One digest over everything an analyst sees of the active rows, besides when they came about.
select md5(coalesce(string_agg(
    concat_ws(' ', match_id, kind, status, verdict, differences::text, partners, is_final),
    E'\n' order by match_id), '')), count(*)
from :"schema".results
