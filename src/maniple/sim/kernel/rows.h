// What kernels are told of rows: where their arrays are, their cameras and lights.
#pragma once

#include <cstdint>

#include "key.h"

// One array that all rows share (stride 0) or that has a part for each row.
struct Field {
  const void* at;
  int64_t stride;  // bytes from one row to the next

  template <class T>
  const T* row(int row) const {
    return (const T*)((const char*)at + stride * row);
  }
};

// The view of camera -1.
struct FreeView {
  double pos[3], mat[9], fovy;
};

// The camera and the lights of one picture.
struct CameraAndLights {
  const double *pos, *mat;
  double fovy;
  const double *light_xpos, *light_xdir;
  const float *light_ambient, *light_diffuse, *light_specular;

  template <class Rows>
  void set(const Rows& rows, const FreeView& free_view, int row, int camera) {
    const bool is_free = camera < 0;
    pos = is_free ? free_view.pos : rows.cam_xpos.template row<double>(row) + 3 * camera;
    mat = is_free ? free_view.mat : rows.cam_xmat.template row<double>(row) + 9 * camera;
    fovy = is_free ? free_view.fovy : rows.cam_fovy.template row<double>(row)[camera];
    light_xpos = rows.light_xpos.template row<double>(row);
    light_xdir = rows.light_xdir.template row<double>(row);
    light_ambient = rows.light_ambient.template row<float>(row);
    light_diffuse = rows.light_diffuse.template row<float>(row);
    light_specular = rows.light_specular.template row<float>(row);
  }
  void add_to(LayerKey& key, int lights) const {
    key.add(pos, 3 * sizeof(double));
    key.add(mat, 9 * sizeof(double));
    key.add(&fovy, sizeof(double));
    key.add(light_xpos, 3 * lights * sizeof(double));
    key.add(light_xdir, 3 * lights * sizeof(double));
    key.add(light_ambient, 3 * lights * sizeof(float));
    key.add(light_diffuse, 3 * lights * sizeof(float));
    key.add(light_specular, 3 * lights * sizeof(float));
  }
};
