/* Do what every step does with a few numbers, without the set-up that numpy needs for many.

   After a physics step numpy's code is cold: a single environment waits for it as long as for the
   physics. quick.py and pack.py do the same in numpy where this file was not compiled, or where
   it answers None: that means "nothing that I know". */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* The type of a buffer's items as one letter, as in the struct module; 0 for anything longer. */
static char kind_of(const Py_buffer *view) {
  const char *format = view->format;
  return format && format[0] && !format[1] ? format[0] : 0;
}

static int is_float(char kind) { return kind == 'd' || kind == 'f'; }

/* Get a view, or turn "has no such buffer" into the answer None. Items without a size ("V0" and
   empty text) are nothing that we know either. */
static int get_view(PyObject *array, Py_buffer *view, int flags) {
  if (PyObject_GetBuffer(array, view, flags | PyBUF_FORMAT)) {
    PyErr_Clear();
    return 0;
  }
  if (view->itemsize > 0) return 1;
  PyBuffer_Release(view);
  return 0;
}

static PyObject *any_true(PyObject *module, PyObject *array) {
  Py_buffer view;
  if (!get_view(array, &view, PyBUF_STRIDES)) Py_RETURN_NONE;
  int is_known = kind_of(&view) == '?' && (view.ndim == 1 || view.ndim == 2), found = 0;
  if (is_known) {
    Py_ssize_t lines = view.ndim == 2 ? view.shape[0] : 1, length = view.shape[view.ndim - 1];
    Py_ssize_t line = view.ndim == 2 ? view.strides[0] : 0, step = view.strides[view.ndim - 1];
    for (Py_ssize_t i = 0; i < lines; i++)
      for (Py_ssize_t j = 0; j < length; j++)
        found |= ((const char *)view.buf)[i * line + j * step];
  }
  PyBuffer_Release(&view);
  if (!is_known) Py_RETURN_NONE;
  return PyBool_FromLong(found);
}

/* Whether no number is further from zero than the radius; NaN always is. */
static PyObject *check_all(PyObject *array, double radius) {
  Py_buffer view;
  if (!get_view(array, &view, PyBUF_C_CONTIGUOUS)) Py_RETURN_NONE;
  char kind = kind_of(&view);
  Py_ssize_t count = view.len / view.itemsize;
  int is_good = 1;
  if (kind == 'd') {
    const double *number = view.buf;
    for (Py_ssize_t i = 0; i < count; i++) is_good &= fabs(number[i]) <= radius;
  } else if (kind == 'f') {
    const float *number = view.buf;
    for (Py_ssize_t i = 0; i < count; i++) is_good &= fabs((double)number[i]) <= radius;
  }
  PyBuffer_Release(&view);
  if (!is_float(kind)) Py_RETURN_NONE;
  return PyBool_FromLong(is_good);
}

static PyObject *all_finite(PyObject *module, PyObject *array) {
  return check_all(array, DBL_MAX);
}

static PyObject *all_within(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "all_within takes an array and a radius");
  double radius = PyFloat_AsDouble(args[1]);
  if (radius == -1.0 && PyErr_Occurred()) return NULL;
  return check_all(args[0], radius);
}

/* One array that a Packer writes: rows of `width` items that lie together. */
typedef struct {
  Py_buffer view, low, high;
  Py_ssize_t width;
  char kind;
  int is_number; /* Cut to bounds and looked through for NaN; else only copied. */
} Target;

typedef struct {
  PyObject_HEAD
  Py_ssize_t count;
  Target *targets;
  int is_strict;
} Packer;

static void packer_free(Packer *self) {
  for (Py_ssize_t i = 0; i < self->count; i++) {
    Target *target = &self->targets[i];
    PyBuffer_Release(&target->view);
    PyBuffer_Release(&target->low);
    PyBuffer_Release(&target->high);
  }
  PyMem_Free(self->targets);
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

/* Items of the axes from `axis` on, or -1 where they do not lie together. */
static Py_ssize_t together(const Py_buffer *view, int axis) {
  Py_ssize_t items = 1;
  for (int k = view->ndim - 1; k >= axis; k--) {
    if (view->shape[k] != 1 && view->strides[k] != items * view->itemsize) return -1;
    items *= view->shape[k];
  }
  return items;
}

static int add_target(Packer *self, PyObject *array, PyObject *bounds) {
  Target *target = &self->targets[self->count];
  memset(target, 0, sizeof *target);
  int flags = PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE;
  if (PyObject_GetBuffer(array, &target->view, flags)) return -1;
  self->count++;
  target->kind = kind_of(&target->view);
  target->width = target->view.ndim ? together(&target->view, 1) : -1;
  if (target->width < 0) {
    PyErr_SetString(PyExc_ValueError, "the items of a row must lie together");
    return -1;
  }
  if (bounds == Py_None) return 0;
  PyObject *low, *high;
  if (!PyArg_ParseTuple(bounds, "OO", &low, &high)) return -1;
  flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;
  if (PyObject_GetBuffer(low, &target->low, flags)) return -1;
  if (PyObject_GetBuffer(high, &target->high, flags)) return -1;
  Py_ssize_t bytes = target->width * target->view.itemsize;
  if (!is_float(target->kind) || kind_of(&target->low) != target->kind ||
      kind_of(&target->high) != target->kind || target->low.len != bytes ||
      target->high.len != bytes) {
    PyErr_SetString(PyExc_ValueError, "bounds must be floats of the array's type, one per item");
    return -1;
  }
  target->is_number = 1;
  return 0;
}

static PyObject *packer_new(PyTypeObject *type, PyObject *args, PyObject *names) {
  PyObject *targets, *bounds;
  int is_strict;
  if (!PyArg_ParseTuple(args, "O!O!p", &PyList_Type, &targets, &PyList_Type, &bounds, &is_strict))
    return NULL;
  Py_ssize_t count = PyList_GET_SIZE(targets);
  if (PyList_GET_SIZE(bounds) != count)
    return PyErr_Format(PyExc_ValueError, "%zd arrays and %zd bounds", count,
                        PyList_GET_SIZE(bounds));
  Packer *self = (Packer *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->is_strict = is_strict;
  self->targets = PyMem_Calloc(count ? count : 1, sizeof(Target));
  if (!self->targets) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (add_target(self, PyList_GET_ITEM(targets, i), PyList_GET_ITEM(bounds, i))) {
      Py_DECREF(self);
      return NULL;
    }
  return (PyObject *)self;
}

/* NaN passes both comparisons, as it does in numpy; taken from itself only a finite number is 0. */
#define CUT_AND_LOOK(TO)                                       \
  {                                                            \
    TO *restrict numbers = (TO *)to;                           \
    const TO *restrict low = target->low.buf;                  \
    const TO *restrict high = target->high.buf;                \
    TO rest = 0;                                               \
    for (Py_ssize_t k = 0; k < target->width; k++) {           \
      TO number = numbers[k];                                  \
      number = number < low[k] ? low[k] : number;              \
      number = number > high[k] ? high[k] : number;            \
      numbers[k] = number;                                     \
      rest += number - number;                                 \
    }                                                          \
    return rest == 0;                                          \
  }

#define COPY(TO, FROM) \
  for (Py_ssize_t k = 0; k < target->width; k++) ((TO *)to)[k] = *(const FROM *)(from + k * step);

/* Copy one row; returns whether its numbers are finite. */
static int copy_row(const Target *target, char *to, const char *from, char kind, Py_ssize_t step) {
  if (kind == target->kind && step == target->view.itemsize) {
    if (to != from) memcpy(to, from, target->width * step);
  } else if (target->kind == 'd') {
    if (kind == 'd') COPY(double, double)
    else if (kind == 'f') COPY(double, float)
    else COPY(double, char)
  } else {
    if (kind == 'd') COPY(float, double)
    else if (kind == 'f') COPY(float, float)
    else COPY(float, char)
  }
  if (!target->is_number) return 1;
  if (target->kind == 'd') CUT_AND_LOOK(double)
  CUT_AND_LOOK(float)
}

/* The bytes that an array's items lie between. */
static void reach(const Py_buffer *view, const char **first, const char **end) {
  *first = view->buf;
  *end = *first + view->itemsize;
  for (int k = 0; k < view->ndim; k++) {
    Py_ssize_t span = (view->shape[k] - 1) * view->strides[k];
    *(span < 0 ? first : end) += span;
  }
}

/* Whether writing the target would change the value on the way. */
static int do_overlap(const Py_buffer *a, const Py_buffer *b) {
  const char *a_first, *a_end, *b_first, *b_end;
  if (!a->len || !b->len) return 0;
  reach(a, &a_first, &a_end);
  reach(b, &b_first, &b_end);
  return a_first < b_end && b_first < a_end;
}

/* Write one value over all rows, or into one; 1 finite, 0 not, -1 unknown. */
static int write_value(const Packer *self, const Target *target, const Py_buffer *value,
                       Py_ssize_t row) {
  int lead = row < 0 ? 1 : 0; /* Whether the value has the axis of rows. */
  if (value->ndim != target->view.ndim - 1 + lead) return -1;
  for (int k = 0; k < value->ndim; k++)
    if (value->shape[k] != target->view.shape[k + 1 - lead]) return -1;
  char kind = kind_of(value);
  if (kind != target->kind && (self->is_strict || !is_float(target->kind))) return -1;
  if (!is_float(kind) && kind != '?' && kind != target->kind) return -1;
  if (kind == 0) return -1;
  Py_ssize_t step = value->itemsize;
  if (together(value, lead) < 0) {
    /* Items apart from each other: one axis of floats can be walked. */
    if (value->ndim != lead + 1 || !is_float(target->kind)) return -1;
    step = value->strides[lead];
  }
  char *to = target->view.buf;
  int is_same = row >= 0 && value->buf == to + row * target->view.strides[0] &&
                kind == target->kind && step == value->itemsize;
  if (!is_same && do_overlap(value, &target->view)) return -1;
  if (row >= 0) return copy_row(target, to + row * target->view.strides[0], value->buf, kind, step);
  int is_finite = 1;
  for (Py_ssize_t r = 0; r < target->view.shape[0]; r++)
    is_finite &= copy_row(target, to + r * target->view.strides[0],
                          (const char *)value->buf + r * value->strides[0], kind, step);
  return is_finite;
}

static PyObject *packer_write(Packer *self, PyObject *const *args, Py_ssize_t count) {
  if (count < 1 || count > 2 || !PyList_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "write takes a list of arrays, and a row");
  Py_ssize_t row = count == 2 ? PyLong_AsSsize_t(args[1]) : -1;
  if (row == -1 && PyErr_Occurred()) return NULL;
  if (PyList_GET_SIZE(args[0]) != self->count) Py_RETURN_NONE;
  int is_finite = 1;
  for (Py_ssize_t i = 0; i < self->count; i++) {
    const Target *target = &self->targets[i];
    if (row >= target->view.shape[0])
      return PyErr_Format(PyExc_IndexError, "there is no row %zd", row);
    PyObject *item = PyList_GET_ITEM(args[0], i);
    Py_buffer value;
    if (PyBytes_Check(item) || PyByteArray_Check(item)) Py_RETURN_NONE; /* text, no numbers */
    if (!get_view(item, &value, PyBUF_STRIDES)) Py_RETURN_NONE;
    int answer = write_value(self, target, &value, row);
    PyBuffer_Release(&value);
    if (answer < 0) Py_RETURN_NONE;
    is_finite &= answer;
  }
  return PyBool_FromLong(is_finite);
}

static PyMethodDef packer_methods[] = {
    {"write", (PyCFunction)packer_write, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot packer_slots[] = {
    {Py_tp_new, packer_new},
    {Py_tp_dealloc, packer_free},
    {Py_tp_methods, packer_methods},
    {0, NULL},
};

static PyType_Spec packer_spec = {"maniple.core._quick.Packer", sizeof(Packer), 0,
                                  Py_TPFLAGS_DEFAULT, packer_slots};

static PyMethodDef functions[] = {
    {"any_true", any_true, METH_O, NULL},
    {"all_finite", all_finite, METH_O, NULL},
    {"all_within", (PyCFunction)all_within, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_quick", NULL, -1, functions,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__quick(void) {
  PyObject *module = PyModule_Create(&definition);
  if (!module) return NULL;
  PyObject *packer = PyType_FromSpec(&packer_spec);
  if (!packer || PyModule_AddObject(module, "Packer", packer)) {
    Py_XDECREF(packer);
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
