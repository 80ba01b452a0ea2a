-- Damages a row of table $1 by operation $2, chosen by chance $3. See damage_function.
select pg_temp.damage($1::text, $2::text, $3::bigint)
