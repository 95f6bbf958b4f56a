package regularfile

// ReadOpened reads a file without a look at its kind before it is opened.
var ReadOpened = readOpened

// OpenPrivateNow opens a file without a look at its kind before it is opened.
var OpenPrivateNow = openPrivateNow

// ReadAll reads the content of a file that is open.
var ReadAll = readAll
