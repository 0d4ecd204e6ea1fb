// The same particle step on an array of structures and on a structure of arrays.

typedef struct {
  float x, y, z;
  float vx, vy, vz;
  float mass, charge;
} Particle;

// Array of structures: 32 bytes per particle, of which six words change.
kernel void particles_aos(global Particle *restrict particles, float dt, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float push = dt * particles[i].charge / particles[i].mass;
  particles[i].vx += push * particles[i].vy;
  particles[i].vz += push;
  particles[i].x += dt * particles[i].vx;
  particles[i].y += dt * particles[i].vy;
  particles[i].z += dt * particles[i].vz;
}

// Structure of arrays: eight planes of one buffer.
kernel void particles_soa(global float *restrict planes, float dt, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  global float *x = planes + i;
  float push = dt * x[7 * count] / x[6 * count];
  float vx = x[3 * count] + push * x[4 * count];
  float vz = x[5 * count] + push;
  x[3 * count] = vx;
  x[5 * count] = vz;
  x[0] += dt * vx;
  x[count] += dt * x[4 * count];
  x[2 * count] += dt * vz;
}

// Only the masses are wanted: one word of each structure.
kernel void particles_mass(global const Particle *restrict particles, global float *restrict masses, int count) {
  int i = get_global_id(0);
  if (i < count)
    masses[i] = particles[i].mass;
}
