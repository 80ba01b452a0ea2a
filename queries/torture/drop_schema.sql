drop schema if exists :"schema" cascade
