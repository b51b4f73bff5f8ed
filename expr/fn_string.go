package expr

func levenshtein(a, b []rune) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diag := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diag
			if x != y {
				cost = min(diag, row[j], row[j+1]) + 1
			}
			diag, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
