module example.test/repository

go 1.26
