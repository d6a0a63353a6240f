package serve

import "reflect"

// Load reads the file that config names, if any, and lays the flags and
// variables over it: a flag wins over a variable (the command-line parser has
// seen to that), and both win over the file. Each setting is taken whole: a
// list is not joined with the list of another source, and protected routes
// given by --route replace route and routes of the file.
func Load(flags Settings, config string) (Settings, error) {
	if config == "" {
		return flags, nil
	}
	file, err := ReadFile(config)
	if err != nil {
		return Settings{}, err
	}
	if flags.Route != nil {
		file.Routes = nil
	}
	return overlay(flags, file), nil
}

// overlay returns upper, with what it does not set taken from lower. A setting
// is set when its pointer or slice is not nil.
func overlay(upper, lower Settings) Settings {
	u, l := reflect.ValueOf(&upper).Elem(), reflect.ValueOf(lower)
	for i := range u.NumField() {
		if u.Field(i).IsNil() {
			u.Field(i).Set(l.Field(i))
		}
	}
	return upper
}
