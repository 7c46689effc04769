module github.com/samya-db/samya

go 1.26

