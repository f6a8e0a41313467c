from standin import check_library

check_library()
