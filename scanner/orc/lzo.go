package orc

import "errors"

var errLZO = errors.New("the LZO block is broken")

// unlzo decompresses an LZO1X block into dst and gives the number of bytes. The format is described in the Linux kernel's
// documentation, "LZO stream format as understood by Linux's LZO decompressor": instructions of a match and up to three
// literals after it; a zero length nibble is extended by bytes.
func unlzo(dst, src []byte) (int, error) {
	d := lzo{dst: dst, src: src}
	if err := d.run(); err != nil {
		return 0, err
	}
	return d.n, nil
}

type lzo struct {
	dst, src []byte
	n, at    int
}

func (d *lzo) byte() (int, bool) {
	if d.at >= len(d.src) {
		return 0, false
	}
	b := d.src[d.at]
	d.at++
	return int(b), true
}

// extended reads a length whose bits in the instruction are zero: 255 for each zero byte, then a last byte.
func (d *lzo) extended(base int) (int, bool) {
	for {
		b, ok := d.byte()
		if !ok || base > len(d.dst) {
			return 0, false
		}
		if b != 0 {
			return base + b, true
		}
		base += 255
	}
}

func (d *lzo) literals(n int) bool {
	if n > len(d.src)-d.at || n > len(d.dst)-d.n {
		return false
	}
	copy(d.dst[d.n:d.n+n], d.src[d.at:])
	d.n, d.at = d.n+n, d.at+n
	return true
}

// match copies n bytes from distance back; they may overlap.
func (d *lzo) match(distance, n int) bool {
	if distance > d.n || n > len(d.dst)-d.n {
		return false
	}
	for i := d.n; i < d.n+n; i++ {
		d.dst[i] = d.dst[i-distance]
	}
	d.n += n
	return true
}

func (d *lzo) run() error {
	// state is how many literals the instruction before copied: 0 to 3 after a match, 4 after a long run.
	state := 0
	if len(d.src) > 0 && d.src[0] > 17 {
		n := int(d.src[0]) - 17
		d.at = 1
		if !d.literals(n) {
			return errLZO
		}
		state = min(n, 4)
	}
	for {
		op, ok := d.byte()
		if !ok {
			return errLZO
		}
		distance, n := 0, 0
		last := op // its low two bits count the literals that follow
		switch {
		case op < 16 && state == 0:
			n = op + 3
			if op == 0 {
				if n, ok = d.extended(18); !ok {
					return errLZO
				}
			}
			if !d.literals(n) {
				return errLZO
			}
			state = 4
			continue
		case op < 16:
			h, ok := d.byte()
			if !ok {
				return errLZO
			}
			if state == 4 {
				n, distance = 3, h<<2+op>>2+2049
			} else {
				n, distance = 2, h<<2+op>>2+1
			}
		case op < 64:
			mask := 31
			if op < 32 {
				mask = 7
			}
			n = op&mask + 2
			if op&mask == 0 {
				if n, ok = d.extended(mask + 2); !ok {
					return errLZO
				}
			}
			lo, ok := d.byte()
			hi, ok2 := d.byte()
			if !ok || !ok2 {
				return errLZO
			}
			last = lo
			distance = (hi<<8 | lo) >> 2
			if op >= 32 {
				distance++
			} else {
				distance += 16384 + op&8<<11
				if distance == 16384 { // the end
					if n != 3 || d.at != len(d.src) {
						return errLZO
					}
					return nil
				}
			}
		default:
			h, ok := d.byte()
			if !ok {
				return errLZO
			}
			if op < 128 {
				n = 3 + op>>5&1
			} else {
				n = 5 + op>>5&3
			}
			distance = h<<3 + op>>2&7 + 1
		}
		if !d.match(distance, n) {
			return errLZO
		}
		state = last & 3
		if !d.literals(state) {
			return errLZO
		}
	}
}
