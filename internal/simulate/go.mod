// A world in one process: API server, machines and Cassandra in memory, and the
// real operator and agents in it. Apart from the product because it links the
// server's own validation (CEL, OpenAPI), which the product does not need.
module helenus.io/helenus/internal/simulate

go 1.26.0

require helenus.io/helenus v0.0.0

replace helenus.io/helenus => ../..
