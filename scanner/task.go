package scanner

// Task is a data file, or a part of one, with the deletes that apply to it.
type Task struct {
	Path string
}
