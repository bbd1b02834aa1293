module helenus.io/helenus

go 1.26
