module github.com/umavez/umavez

go 1.26
