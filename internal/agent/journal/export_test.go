package journal

// Checksum lets tests make files with a right checksum.
var Checksum = checksum
