package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/pierrec/lz4/v4"
)

// system.local is one row of about a kilobyte; anything much larger is not what it claims to be.
const maxFileBytes = 4 << 20

// readSSTable merges the rows of one SSTable into rows.
//
// Formats: "big" of versions na to oa (Cassandra 4.0 to 5.0) and "bti" of version da (5.0). A later
// version is read like the last known one: a row that was read completely, with nothing left over,
// is right. One that is not is an error.
func readSSTable(volume fs.FS, dir, name string, rows *partition) error {
	parts := strings.Split(name, "-")
	if len(parts) != 3 || len(parts[0]) != 2 {
		return errors.New("the name has not the form version-id-format")
	}
	version, format := parts[0], parts[2]
	if format != "big" && format != "bti" || format == "big" && version < "na" {
		return fmt.Errorf("format %s, version %s is not supported", format, version)
	}
	statistics, err := readFile(volume, path.Join(dir, name+"-Statistics.db"))
	if err != nil {
		return err
	}
	header, err := parseHeader(statistics)
	if err != nil {
		return fmt.Errorf("read Statistics.db: %w", err)
	}
	data, err := readFile(volume, path.Join(dir, name+dataSuffix))
	if err != nil {
		return err
	}
	digest, err := readFile(volume, path.Join(dir, name+"-Digest.crc32"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case strings.TrimSpace(string(digest)) != strconv.FormatUint(uint64(crc32.ChecksumIEEE(data)), 10):
		return errors.New("checksum of Data.db does not match")
	}
	info, err := readFile(volume, path.Join(dir, name+"-CompressionInfo.db"))
	switch {
	case errors.Is(err, fs.ErrNotExist): // not compressed
	case err != nil:
		return err
	default:
		if data, err = decompress(info, data); err != nil {
			return fmt.Errorf("decompress Data.db: %w", err)
		}
	}
	oldDeletions := format == "big" && version < "oa"
	if err := rows.read(data, header, oldDeletions); err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	return nil
}

func readFile(volume fs.FS, name string) ([]byte, error) {
	file, err := volume.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxFileBytes)
	}
	return content, nil
}

// decompress joins the chunks of a compressed data file. Each chunk in the file is followed by its
// CRC-32.
func decompress(info, data []byte) ([]byte, error) {
	in := &input{b: info}
	compressor := in.utf()
	for range in.uint32() { // options: name and value
		if in.utf(); in.err != nil {
			break
		}
		in.utf()
	}
	chunkLength, maxCompressed, length, chunks := uint64(in.uint32()), in.uint32(), in.uint64(), in.uint32()
	if in.err != nil {
		return nil, fmt.Errorf("CompressionInfo.db: %w", in.err)
	}
	var uncompress func(stored []byte, want uint64) ([]byte, error)
	switch compressor {
	case "LZ4Compressor": // Cassandra's default for its own tables
		uncompress = uncompressLZ4
	case "NoopCompressor": // with flush_compression: none
		uncompress = uncompressed
	default:
		return nil, fmt.Errorf("compressed with %s: only LZ4Compressor and NoopCompressor are supported", compressor)
	}
	// A compaction may leave a chunk of no bytes at the end.
	if length > maxFileBytes || chunkLength == 0 || uint64(chunks) < (length+chunkLength-1)/chunkLength {
		return nil, fmt.Errorf("CompressionInfo.db: %d bytes in %d chunks of %d", length, chunks, chunkLength)
	}
	out := make([]byte, 0, length)
	offset := in.uint64()
	for i := range chunks {
		end := uint64(len(data))
		if i+1 < chunks {
			end = in.uint64()
		}
		if in.err != nil || offset > end || end > uint64(len(data)) || end-offset < 4 {
			return nil, fmt.Errorf("chunk %d of %d is not within the file", i+1, chunks)
		}
		stored, sum := data[offset:end-4], binary.BigEndian.Uint32(data[end-4:end])
		if crc32.ChecksumIEEE(stored) != sum {
			return nil, fmt.Errorf("chunk %d of %d: checksum does not match", i+1, chunks)
		}
		want := min(chunkLength, length-uint64(len(out)))
		read := uncompress
		if uint64(len(stored)) >= uint64(maxCompressed) { // compression did not make it smaller
			read = uncompressed
		}
		chunk, err := read(stored, want)
		if err != nil {
			return nil, fmt.Errorf("chunk %d of %d: %w", i+1, chunks, err)
		}
		out, offset = append(out, chunk...), end
	}
	return out, nil
}

// uncompressed takes a chunk as it is. It may be padded.
func uncompressed(stored []byte, want uint64) ([]byte, error) {
	if uint64(len(stored)) < want {
		return nil, errShort
	}
	return stored[:want], nil
}

// uncompressLZ4: the length, little-endian, then one LZ4 block.
func uncompressLZ4(stored []byte, want uint64) ([]byte, error) {
	if len(stored) < 4 || uint64(binary.LittleEndian.Uint32(stored)) != want {
		return nil, errors.New("length does not match")
	}
	if want == 0 {
		return nil, nil
	}
	chunk := make([]byte, want)
	n, err := lz4.UncompressBlock(stored[4:], chunk)
	if err != nil {
		return nil, err
	}
	if uint64(n) != want {
		return nil, errShort
	}
	return chunk, nil
}
