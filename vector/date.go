package vector

// CivilDays counts the days from 1970-01-01 to a date of the proleptic Gregorian calendar (Howard Hinnant's algorithm).
func CivilDays(y int64, m, d int) int64 {
	if m <= 2 {
		y--
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	mp := int64(m+9) % 12
	doy := (153*mp+2)/5 + int64(d) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}
